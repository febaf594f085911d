module lyo.cache;

import lyo.prelude;
import lyo.base;
import :key;
import :entry;
import :encoding;
import :archive;

namespace lyo {
namespace {

constexpr std::array<char, 8> magic = {'L', 'Y', 'O', 'M', 'A', 'N', 'Y', '\n'};
constexpr std::uint32_t archive_version = 1;
constexpr std::uint64_t alignment = 4096;

struct Header {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t entries;
    std::uint64_t length;
    std::uint64_t zero;
    Digest root;
};
static_assert(sizeof(Header) == 64);
constexpr std::size_t row_size = 48;

constexpr std::uint64_t aligned(std::uint64_t at) noexcept { return (at + alignment - 1) / alignment * alignment; }

Digest root_of(Header header, std::span<const std::byte> table) {
    header.root = {};
    return sha256({std::as_bytes(std::span(&header, 1)), table});
}

bool is_zero(std::span<const std::byte> bytes) noexcept {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

bool EntryArchive::is_archive(std::span<const std::byte> bytes) noexcept {
    return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

Result<EntryArchive> EntryArchive::open(Bytes bytes) try {
    const std::string_view where = "archive";
    if (!is_archive(bytes)) return fail(ErrorCode::bad_magic, where, "it does not begin as an archive does");
    if (bytes.size() < sizeof(Header))
        return mismatch(ErrorCode::truncated, where, "bytes", cat("at least ", sizeof(Header)), bytes.size());
    Header header{};
    std::memcpy(&header, bytes.data(), sizeof(Header));
    if (header.version != archive_version)
        return mismatch(ErrorCode::unsupported_version, where, "version", archive_version, header.version);
    if (header.length != bytes.size())
        return mismatch(ErrorCode::truncated, where, "bytes", header.length, bytes.size());
    if (header.zero != 0) return fail(ErrorCode::bad_encoding, where, "reserved bytes are not zero");
    const std::uint64_t table_bytes = std::uint64_t{row_size} * header.entries;
    if (header.entries > max_entries || sizeof(Header) + table_bytes > bytes.size())
        return mismatch(ErrorCode::truncated, where, "entries", "as many as there is room for", header.entries);
    const auto table = bytes.span().subspan(sizeof(Header), table_bytes);
    if (root_of(header, table) != header.root) return fail(ErrorCode::bad_digest, where, "its root digest is wrong");
    EntryArchive out;
    Reader reader(table);
    std::uint64_t end = sizeof(Header) + table_bytes;
    std::set<Digest> keys;
    for (std::uint32_t i = 0; i < header.entries; ++i) {
        Row row;
        row.key = reader.read<Digest>();
        row.offset = reader.read<std::uint64_t>();
        row.length = reader.read<std::uint64_t>();
        if (row.offset != aligned(end) || row.offset > bytes.size() || row.length > bytes.size() - row.offset)
            return fail(ErrorCode::bad_encoding, cat(where, ", entry ", i), "it is not where it must be");
        if (!is_zero(bytes.span().subspan(end, row.offset - end)))
            return fail(ErrorCode::bad_encoding, cat(where, ", entry ", i), "the bytes before it are not zero");
        if (!keys.insert(row.key).second)
            return fail(ErrorCode::bad_encoding, cat(where, ", entry ", i), "its key is there twice");
        end = row.offset + row.length;
        out.table_.push_back(row);
    }
    if (end != bytes.size()) return fail(ErrorCode::bad_encoding, where, "bytes behind the last entry");
    out.bytes_ = std::move(bytes);
    return out;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "archive", "no memory");
}

Result<Bytes> EntryArchive::make(std::span<const Bytes> entries) try {
    if (entries.size() > max_entries)
        return mismatch(ErrorCode::invalid_argument, "archive", "entries", cat("at most ", max_entries),
                        entries.size());
    Header header{magic, archive_version, static_cast<std::uint32_t>(entries.size()), 0, 0, {}};
    std::vector<std::byte> table;
    std::vector<std::uint64_t> offsets;
    std::set<Digest> keys;
    std::uint64_t end = sizeof(Header) + row_size * entries.size();
    for (const Bytes& sealed : entries) {
        const auto entry = open_entry(sealed);
        if (!entry) return std::unexpected(entry.error());
        if (!keys.insert(entry->key.digest()).second)
            return fail(ErrorCode::invalid_argument, "archive", "the key ", entry->key.digest().hex(),
                        " is there twice");
        offsets.push_back(aligned(end));
        append(table, entry->key.digest());
        append(table, offsets.back());
        append(table, std::uint64_t{sealed.size()});
        end = offsets.back() + sealed.size();
    }
    header.length = end;
    header.root = root_of(header, table);
    return Bytes::make(end, [&](std::span<std::byte> out) -> Result<> {
        std::memcpy(out.data(), &header, sizeof(Header));
        if (!table.empty()) std::memcpy(out.data() + sizeof(Header), table.data(), table.size());
        for (std::size_t i = 0; i < entries.size(); ++i)
            std::memcpy(out.data() + offsets[i], entries[i].data(), entries[i].size());
        return {};
    });
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "archive", "no memory");
}

}  // namespace lyo
