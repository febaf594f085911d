// What is in the store, how much of it, and what goes.
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

/// What is left after a removal that a put began: room for a tenth of the limit, so that the walk over all entries
/// comes once in so many bytes and a put costs the same however many there are.
std::uint64_t low_water(std::uint64_t limit) noexcept { return limit - limit / 10; }

/// Removes the files in a folder whose lock can be had: their owners are dead.
void remove_unlocked(const std::string& folder) {
    const auto names = files::list(folder);
    if (!names) return;
    for (const std::string& name : *names) {
        const std::string path = cat(folder, "/", name);
        const auto file = files::open_existing(path);
        if (!file || !file->is_open()) continue;
        const auto locked = files::try_lock(*file, path);
        if (locked && *locked) static_cast<void>(files::remove(path));
    }
}

}  // namespace

void LocalStore::remove_leftovers() const {
    remove_unlocked(place("tmp"));
    remove_unlocked(place("locks"));
}

Result<std::vector<LocalEntry>> LocalStore::list() const try {
    std::vector<LocalEntry> out;
    const auto shards = files::list(place("entries"));
    if (!shards) return std::unexpected(shards.error());
    for (const std::string& shard : *shards) {
        const std::string folder = cat(place("entries"), "/", shard);
        const auto names = files::list(folder);
        if (!names) return std::unexpected(names.error());
        for (const std::string& name : *names) {
            const auto key = parse_digest(name);
            if (!key || !name.starts_with(shard)) continue;
            const auto info = files::status(cat(folder, "/", name));
            if (!info) return std::unexpected(info.error());
            if (*info) out.push_back({*key, (*info)->size, (*info)->used_ns});
        }
    }
    return out;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<EntryHead> LocalStore::head(const Digest& key) const try {
    const std::string path = entry_path(key);
    const auto file = files::open_existing(path);
    if (!file) return std::unexpected(file.error());
    if (!file->is_open()) return fail(ErrorCode::file, path, "there is no such entry");
    const auto info = files::status(*file, path);
    if (!info) return std::unexpected(info.error());
    if (!info->is_regular) return fail(ErrorCode::file, path, "not a regular file");
    // Most keys are short; a second look takes what a long one needs.
    for (const std::size_t guess : {std::size_t{4096}, entry_format::max_parts_size + entry_format::trailer_size}) {
        std::vector<std::byte> tail(std::min<std::uint64_t>(info->size, guess));
        if (auto ok = files::read_at(*file, info->size - tail.size(), tail, path); !ok)
            return std::unexpected(ok.error());
        auto head = read_entry_tail(tail, info->size);
        if (head || tail.size() < guess || head.error().code != ErrorCode::truncated || guess > 4096) {
            if (!head) return std::unexpected(std::move(head.error()).in(path));
            return head;
        }
    }
    return fail(ErrorCode::truncated, path, "the entry is shorter than its key");
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

Result<std::uint64_t> LocalStore::collect(std::uint64_t bytes) try {
    const std::string guard = place("collecting");
    const auto file = files::open_or_make(guard);
    if (!file) return std::unexpected(file.error());
    const auto locked = files::try_lock(*file, guard);
    if (!locked) return std::unexpected(locked.error());
    if (!*locked) return 0;

    remove_leftovers();
    const std::string damaged = place("damaged");
    if (const auto names = files::list(damaged))
        for (const std::string& name : *names) static_cast<void>(files::remove(cat(damaged, "/", name)));
    auto entries = list();
    if (!entries) return std::unexpected(entries.error());
    std::uint64_t total = 0, removed = 0;
    for (const LocalEntry& entry : *entries) total += entry.bytes;
    std::sort(entries->begin(), entries->end(), [](const LocalEntry& a, const LocalEntry& b) {
        return std::tie(a.used_ns, a.key) < std::tie(b.used_ns, b.key);
    });
    for (const LocalEntry& entry : *entries) {
        if (total <= bytes) break;
        const std::string path = entry_path(entry.key);
        const auto now = files::status(path);
        if (now && *now && (*now)->used_ns != entry.used_ns) continue;  // used, or put again, since the walk began
        const auto gone = files::remove(path);
        if (!gone) return std::unexpected(gone.error());
        total -= entry.bytes;
        if (*gone) ++removed;
    }
    counters_.add(Counter::evictions, removed);
    change_usage(place("usage"), [&](UsageRecord& record) { record.bytes = static_cast<std::int64_t>(total); });
    return removed;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

void LocalStore::add_usage(std::int64_t bytes) {
    pending_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    UsageRecord after;
    {
        const std::lock_guard lock(flushing_);
        const CounterValues now = counters_.values();
        const std::int64_t pending = pending_bytes_.load(std::memory_order_relaxed);
        if (pending == 0 && now == flushed_) return;
        const std::string path = place("usage");
        if (const auto there = files::status(place("entries")); bytes == 0 && (!there || !*there)) return;
        const bool changed = change_usage(
            path,
            [&](UsageRecord& record) {
                record.bytes += pending;
                for (std::size_t i = 0; i < counter_count; ++i) record.totals[i] += now[i] - flushed_[i];
            },
            &after);
        if (!changed) return;
        pending_bytes_.fetch_sub(pending, std::memory_order_relaxed);
        flushed_ = now;
    }
    if (options_.max_bytes == 0 || bytes <= 0 || static_cast<std::uint64_t>(after.bytes) <= options_.max_bytes) return;
    if (const auto done = collect(low_water(options_.max_bytes)); !done) report(done.error());
}

Result<LocalUsage> LocalStore::usage() const try {
    LocalUsage out;
    out.max_bytes = options_.max_bytes;
    const auto entries = list();
    if (!entries) return std::unexpected(entries.error());
    out.entries = entries->size();
    for (const LocalEntry& entry : *entries) out.bytes += entry.bytes;
    const std::string folder = place("damaged");
    const auto damaged = files::list(folder);
    if (!damaged) return std::unexpected(damaged.error());
    out.damaged = damaged->size();
    for (const std::string& name : *damaged)
        if (const auto info = files::status(cat(folder, "/", name)); info && *info) out.damaged_bytes += (*info)->size;
    const UsageRecord record = read_usage(place("usage"));
    const CounterValues now = counters_.values();
    const std::lock_guard lock(flushing_);
    for (std::size_t i = 0; i < counter_count; ++i) out.totals[i] = record.totals[i] + now[i] - flushed_[i];
    return out;
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "cache", "no memory");
}

}  // namespace lyo
