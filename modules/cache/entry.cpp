module lyo.cache;

import lyo.prelude;
import lyo.base;
import :key;
import :entry;
import :encoding;

namespace lyo {
namespace {

constexpr std::array<char, 8> magic = {'L', 'Y', 'O', 'E', 'N', 'T', 'R', 'Y'};

struct Trailer {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t parts;
    std::uint64_t value_bytes;
    std::uint64_t parts_bytes;
    Digest value_digest;
    Digest seal;
};
static_assert(sizeof(Trailer) == entry_format::trailer_size);

Digest seal_of(std::span<const std::byte> parts, Trailer trailer) {
    trailer.seal = {};
    return sha256({parts, std::as_bytes(std::span(&trailer, 1))});
}

}  // namespace

std::vector<std::byte> encode_parts(std::span<const KeyPart> parts) {
    std::vector<std::byte> out;
    const auto text = [&](const std::string& s) {
        append(out, static_cast<std::uint32_t>(s.size()));
        const auto bytes = std::as_bytes(std::span(s));
        out.insert(out.end(), bytes.begin(), bytes.end());
    };
    for (const KeyPart& part : parts) {
        text(part.name);
        text(part.value);
    }
    return out;
}

Result<CacheKey> decode_parts(std::span<const std::byte> bytes, std::uint32_t count) {
    if (count > CacheKey::max_parts)
        return mismatch(ErrorCode::bad_encoding, "key", "parts", cat("at most ", CacheKey::max_parts), count);
    Reader reader(bytes);
    const auto text = [&] {
        const auto chars = reader.take(reader.read<std::uint32_t>());
        return std::string(reinterpret_cast<const char*>(chars.data()), chars.size());
    };
    std::vector<KeyPart> parts(count);
    for (std::size_t i = 0; i < count && reader.good(); ++i) {
        parts[i].name = text();
        parts[i].value = text();
        if (i > 0 && parts[i].name <= parts[i - 1].name)
            return fail(ErrorCode::bad_encoding, "key", "its parts are not in order");
    }
    if (!reader.good() || !reader.at_end())
        return fail(ErrorCode::bad_encoding, "key", "its parts do not fill their bytes");
    auto key = CacheKey::make(std::move(parts));
    if (!key) return fail(ErrorCode::bad_encoding, "key", key.error().what);
    return key;
}

std::vector<std::byte> entry_tail(const CacheKey& key, std::span<const std::byte> value) {
    std::vector<std::byte> out = encode_parts(key.parts());
    Trailer trailer{magic,
                    entry_format::version,
                    static_cast<std::uint32_t>(key.parts().size()),
                    value.size(),
                    out.size(),
                    tree_digest(value),
                    {}};
    trailer.seal = seal_of(out, trailer);
    append(out, trailer);
    return out;
}

Result<Bytes> seal_entry(const CacheKey& key, std::span<const std::byte> value) {
    const auto tail = entry_tail(key, value);
    return Bytes::make(value.size() + tail.size(), [&](std::span<std::byte> out) -> Result<> {
        std::copy(value.begin(), value.end(), out.begin());
        std::copy(tail.begin(), tail.end(), out.begin() + static_cast<std::ptrdiff_t>(value.size()));
        return {};
    });
}

Result<EntryHead> read_entry_tail(std::span<const std::byte> tail, std::uint64_t total) {
    if (tail.size() < sizeof(Trailer))
        return mismatch(ErrorCode::truncated, "entry", "bytes", cat("at least ", sizeof(Trailer)), tail.size());
    Trailer trailer{};
    std::memcpy(&trailer, tail.data() + (tail.size() - sizeof(Trailer)), sizeof(Trailer));
    if (trailer.magic != magic) return fail(ErrorCode::bad_magic, "entry", "it does not end as an entry does");
    if (trailer.version != entry_format::version)
        return mismatch(ErrorCode::unsupported_version, "entry", "version", entry_format::version, trailer.version);
    if (trailer.parts_bytes > entry_format::max_parts_size)
        return mismatch(ErrorCode::bad_encoding, "entry", "bytes of the key",
                        cat("at most ", entry_format::max_parts_size), trailer.parts_bytes);
    const std::uint64_t behind = trailer.parts_bytes + sizeof(Trailer);
    if (total < behind || total - behind != trailer.value_bytes || tail.size() < behind)
        return mismatch(ErrorCode::truncated, "entry", "bytes", cat(trailer.value_bytes, " + ", behind), total);
    const auto parts = tail.subspan(tail.size() - behind, trailer.parts_bytes);
    if (seal_of(parts, trailer) != trailer.seal) return fail(ErrorCode::bad_digest, "entry", "its seal is wrong");
    auto key = decode_parts(parts, trailer.parts);
    if (!key) return std::unexpected(std::move(key.error()).in("entry"));
    return EntryHead{std::move(*key), trailer.value_bytes, trailer.value_digest};
}

Result<CacheEntry> open_entry(const Bytes& bytes) try {
    auto head = read_entry_tail(bytes, bytes.size());
    if (!head) return std::unexpected(head.error());
    Bytes value = bytes.slice(0, head->value_bytes);
    if (const Digest digest = tree_digest(value); digest != head->value_digest)
        return mismatch(ErrorCode::bad_digest, "entry", "digest of the value", head->value_digest.hex(), digest.hex());
    return CacheEntry{std::move(head->key), std::move(value)};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "entry", "no memory");
}

Result<CacheEntry> open_entry(const Bytes& bytes, const Digest& expected) {
    auto entry = open_entry(bytes);
    if (entry && entry->key.digest() != expected)
        return mismatch(ErrorCode::bad_value, "entry", "key", expected.hex(), entry->key.digest().hex());
    return entry;
}

}  // namespace lyo
