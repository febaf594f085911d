// The one file that knows the zip library.
module;
#include <zip.h>

module lyo.importer;

import lyo.prelude;
import lyo.base;
import :support;
import :archive;

namespace lyo {
namespace {

constexpr std::uint64_t max_entries = std::uint64_t{1} << 16;

std::uint64_t little_endian(std::span<const std::byte> bytes) noexcept {
    std::uint64_t out = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return out;
}

/// The zip library sizes its table by the number of entries that a zip64 trailer states before it reads one of them, so
/// the number is held against what the archive has room for first. Every place that may be a trailer is looked at.
Result<> check_entry_count(std::span<const std::byte> bytes) {
    constexpr std::size_t trailer = 22, locator = 20, trailer64 = 56, longest_comment = 0xffff, central_entry = 46;
    if (bytes.size() < trailer) return fail(ErrorCode::bad_archive, "", "not a zip archive: ", bytes.size(), " bytes");
    const std::size_t last = bytes.size() - trailer;
    const std::size_t first = last - std::min(last, longest_comment + locator);
    for (std::size_t at = first; at <= last; ++at) {
        if (little_endian(bytes.subspan(at, 4)) != 0x06054b50) continue;
        if (at < locator || little_endian(bytes.subspan(at - locator, 4)) != 0x07064b50) continue;
        const std::uint64_t offset = little_endian(bytes.subspan(at - locator + 8, 8));
        if (offset > bytes.size() || bytes.size() - offset < trailer64) continue;
        const auto record = bytes.subspan(static_cast<std::size_t>(offset), trailer64);
        // An archive that is stored in this one has a trailer too, whose offset means nothing here.
        if (little_endian(record.first(4)) != 0x06064b50) continue;
        constexpr std::size_t fields[] = {24, 32};  // entries here, entries in all
        for (const std::size_t field : fields) {
            const std::uint64_t count = little_endian(record.subspan(field, 8));
            if (count > std::min(max_entries, std::uint64_t{bytes.size() / central_entry}))
                return mismatch(ErrorCode::limit_exceeded, "", "entries",
                                cat("at most ", max_entries, ", and no more than fit"), count);
        }
    }
    return {};
}

struct CloseFile {
    void operator()(zip_file_t* file) const noexcept { zip_fclose(file); }
};

zip_t* handle(const std::shared_ptr<void>& zip) noexcept { return static_cast<zip_t*>(zip.get()); }

}  // namespace

Result<Archive> Archive::open(const Bytes& bytes) {
    if (auto counted = check_entry_count(bytes); !counted) return std::unexpected(counted.error());
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    zip_t* zip = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
    if (zip == nullptr) {
        const std::string reason = zip_error_strerror(&error);
        if (source != nullptr) zip_source_free(source);
        zip_error_fini(&error);
        return fail(ErrorCode::bad_archive, "", "not a readable zip archive: ", reason);
    }
    zip_error_fini(&error);

    Archive out;
    out.bytes_ = bytes;
    out.zip_ = std::shared_ptr<void>(zip, [](void* p) { zip_discard(static_cast<zip_t*>(p)); });
    const auto count = static_cast<std::uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(zip, 0), 0));
    if (count > max_entries)
        return mismatch(ErrorCode::limit_exceeded, "", "entries", cat("at most ", max_entries), count);
    std::optional<std::string> top;
    for (std::uint64_t i = 0; i < count; ++i) {
        const char* raw = zip_get_name(zip, i, ZIP_FL_ENC_RAW);
        if (raw == nullptr) return fail(ErrorCode::bad_archive, "", "entry ", i, " has no name");
        const std::string_view name = raw;
        const auto slash = name.find('/');
        const std::string_view folder = name.substr(0, slash);
        if (slash == std::string_view::npos || folder.empty())
            return fail(ErrorCode::bad_archive, "", "entry ", name, " is not in a top folder");
        if (!top) top = folder;
        if (folder != *top)
            return fail(ErrorCode::bad_archive, "", "more than one top folder: ", *top, " and ", folder);
        if (!out.entries_.emplace(name.substr(slash + 1), i).second)
            return fail(ErrorCode::bad_archive, "", "two entries are named ", name);
    }
    return out;
}

bool Archive::contains(std::string_view path) const { return entries_.contains(path); }

std::vector<std::string> Archive::list(std::string_view prefix) const {
    std::vector<std::string> out;
    for (auto at = entries_.lower_bound(prefix); at != entries_.end() && at->first.starts_with(prefix); ++at)
        out.push_back(at->first);
    return out;
}

Result<Bytes> Archive::read(std::string_view path, Budget& budget) const {
    const auto at = entries_.find(path);
    if (at == entries_.end()) return fail(ErrorCode::bad_archive, path, "the archive has no such entry");
    zip_stat_t stat;
    zip_stat_init(&stat);
    constexpr zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(handle(zip_), at->second, 0, &stat) != 0 || (stat.valid & needed) != needed)
        return fail(ErrorCode::bad_archive, path, "the entry has no size: ", zip_strerror(handle(zip_)));
    // What is stored is as long as it says, and lies within the archive; what is compressed may claim any length.
    if (stat.comp_method == ZIP_CM_STORE && (stat.size != stat.comp_size || stat.size > bytes_.size()))
        return mismatch(ErrorCode::bad_archive, path, "size of a stored entry",
                        std::min<std::uint64_t>(stat.comp_size, bytes_.size()), stat.size);
    if (auto taken = budget.take(stat.size, path); !taken) return std::unexpected(taken.error());

    const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(handle(zip_), at->second, 0));
    if (!file) return fail(ErrorCode::bad_archive, path, zip_strerror(handle(zip_)));
    return Bytes::make(static_cast<std::size_t>(stat.size), [&](std::span<std::byte> out) -> Result<> {
        std::size_t done = 0;
        while (done < out.size()) {
            const zip_int64_t n = zip_fread(file.get(), out.data() + done, out.size() - done);
            if (n < 0) return fail(ErrorCode::bad_archive, path, zip_file_strerror(file.get()));
            if (n == 0) return mismatch(ErrorCode::bad_archive, path, "bytes", out.size(), done);
            done += static_cast<std::size_t>(n);
        }
        // The library compares the checksum only when it meets the entry's end.
        std::byte more{};
        const zip_int64_t n = zip_fread(file.get(), &more, 1);
        if (n < 0) return fail(ErrorCode::bad_archive, path, zip_file_strerror(file.get()));
        if (n > 0) return mismatch(ErrorCode::bad_archive, path, "bytes", out.size(), "more");
        return {};
    });
}

}  // namespace lyo
