// Reading and writing entries, and who makes one. What removes them is in collect.cpp.
module lyo.cache;

import lyo.prelude;
import lyo.base;
import :key;
import :entry;
import :counters;
import :store;
import :local;
import :files;
import :usage;

namespace lyo {
namespace {

/// Larger entries are mapped: reading them once costs more than the mapping.
constexpr std::uint64_t map_from = std::uint64_t{1} << 20;
/// So many damaged entries are kept; a disk that damages more would fill itself with them.
constexpr std::size_t max_damaged = 64;

}  // namespace

LocalStore::LocalStore(LocalOptions options, Counters& counters, Reporter report)
    : options_(std::move(options)), counters_(counters), report_(std::move(report)) {}

LocalStore::~LocalStore() { add_usage(0); }

std::string LocalStore::place(std::string_view name) const { return cat(options_.path, "/v1/", name); }

std::string LocalStore::entry_path(const Digest& key) const {
    const std::string hex = key.hex();
    return cat(options_.path, "/v1/entries/", hex.substr(0, 2), "/", hex);
}

void LocalStore::report(const Error& error) const {
    if (report_) report_(error);
}

Result<std::optional<CacheEntry>> LocalStore::get(const Digest& key) try {
    const std::string path = entry_path(key);
    auto file = files::open_existing(path);
    if (!file) return std::unexpected(file.error());
    if (!file->is_open()) return std::optional<CacheEntry>();
    const auto info = files::status(*file, path);
    if (!info) return std::unexpected(info.error());
    if (!info->is_regular) {
        move_aside(key, info->inode, {ErrorCode::file, "not a regular file", path});
        return std::optional<CacheEntry>();
    }
    const auto bytes = files::load(*file, info->size, map_from, path);
    if (!bytes && bytes.error().code != ErrorCode::truncated) return std::unexpected(bytes.error());
    auto entry = bytes ? open_entry(*bytes, key) : std::unexpected(bytes.error());
    if (!entry) {
        if (entry.error().code == ErrorCode::out_of_memory) return std::unexpected(entry.error());
        move_aside(key, info->inode, Error(entry.error()).in(path));
        return std::optional<CacheEntry>();
    }
    files::touch(*file);
    counters_.add(Counter::bytes_read, info->size);
    return std::optional<CacheEntry>(std::move(*entry));
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<> LocalStore::put(const CacheKey& key, std::span<const std::byte> value) try {
    return write_entry(key.digest(), {value, entry_tail(key, value)});
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<> LocalStore::put_sealed(const Digest& key, std::span<const std::byte> entry) {
    return write_entry(key, {entry});
}

Result<> LocalStore::write_entry(const Digest& key, std::initializer_list<std::span<const std::byte>> parts) try {
    const Stopwatch watch(counters_, Counter::put_ns);
    std::uint64_t size = 0;
    for (const auto part : parts) size += part.size();
    const std::string folder = place("tmp"), path = entry_path(key), shard = path.substr(0, path.rfind('/'));
    const auto give_up = [&](Error error) -> std::unexpected<Error> {
        counters_.add(Counter::put_errors);
        return std::unexpected(std::move(error));
    };
    if (!swept_.exchange(true)) remove_leftovers();
    // More than once: the folders may be missing, or somebody removes them, or takes the file for a leftover before it
    // is locked.
    for (int attempt = 0;; ++attempt) {
        const std::string temporary = cat(folder, "/", files::unique_name());
        auto file = files::make_new(temporary);
        if (!file || !*file) {
            if (attempt > 1)
                return give_up(file ? Error{ErrorCode::file, "its name is taken", temporary} : file.error());
            if (auto ok = files::make_folders(folder); !ok) return give_up(ok.error());
            continue;
        }
        static_cast<void>(files::try_lock(**file, temporary));
        Result<> done = files::write(**file, parts, temporary);
        if (!done) {
            static_cast<void>(files::remove(temporary));
            return give_up(done.error());
        }
        const auto old = files::status(path);
        const std::uint64_t before = old && *old ? (*old)->size : 0;
        done = files::rename(temporary, path);
        if (!done) {
            static_cast<void>(files::remove(temporary));
            if (attempt > 1) return give_up(done.error());
            if (auto ok = files::make_folders(shard); !ok) return give_up(ok.error());
            continue;
        }
        counters_.add(Counter::puts);
        counters_.add(Counter::bytes_written, size);
        add_usage(static_cast<std::int64_t>(size) - static_cast<std::int64_t>(before));
        return {};
    }
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

void LocalStore::reject(const Digest& key, const Error& reason) {
    const auto info = files::status(entry_path(key));
    if (info && *info) move_aside(key, (*info)->inode, reason);
}

void LocalStore::move_aside(const Digest& key, std::uint64_t inode, const Error& reason) {
    counters_.add(Counter::corrupt);
    const std::string path = entry_path(key), folder = place("damaged");
    const std::string aside = cat(folder, "/", key.hex(), "-", files::unique_name());
    const auto kept = files::list(folder);
    auto moved = files::rename(path, aside);
    if (!moved && files::make_folders(folder)) moved = files::rename(path, aside);
    Error error = reason;
    if (moved) {
        // Between the look and the move somebody may have put a good one there: it goes back.
        const auto info = files::status(aside);
        if (info && *info && (*info)->inode != inode) {
            static_cast<void>(files::link(aside, path));
            static_cast<void>(files::remove(aside));
        } else if (kept && kept->size() >= max_damaged) {
            static_cast<void>(files::remove(aside));
            error.what += "; removed";
        } else {
            error.what += cat("; moved to ", aside);
        }
    }
    report(error);
}

Result<bool> LocalStore::remove(const Digest& key) {
    const std::string path = entry_path(key);
    const auto info = files::status(path);
    auto removed = files::remove(path);
    if (removed && *removed && info && *info) add_usage(-static_cast<std::int64_t>((*info)->size));
    return removed;
}

struct LocalStore::Flight::State {
    files::File file;
    std::string path;
};

LocalStore::Flight::Flight(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
LocalStore::Flight::Flight(Flight&&) noexcept = default;
LocalStore::Flight::~Flight() {
    // Removed while it is held: whoever opened it before sees that it has no name any more, and makes a new one.
    if (state_) static_cast<void>(files::remove(state_->path));
}

Result<std::optional<LocalStore::Flight>> LocalStore::try_begin(const Digest& key) try {
    const std::string folder = place("locks"), path = cat(folder, "/", key.hex());
    for (int attempt = 0; attempt < 100; ++attempt) {
        auto file = files::open_or_make(path);
        if (!file) {
            if (attempt > 1) return std::unexpected(file.error());
            if (auto ok = files::make_folders(folder); !ok) return std::unexpected(ok.error());
            continue;
        }
        const auto locked = files::try_lock(*file, path);
        if (!locked) return std::unexpected(locked.error());
        if (!*locked) return std::optional<Flight>();
        const auto info = files::status(*file, path);
        if (!info) return std::unexpected(info.error());
        if (info->links == 0) continue;
        return std::optional<Flight>(Flight(std::make_unique<Flight::State>(std::move(*file), path)));
    }
    return std::optional<Flight>();
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

}  // namespace lyo
