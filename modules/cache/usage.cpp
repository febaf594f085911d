module lyo.cache;

import lyo.prelude;
import lyo.base;
import :counters;
import :files;
import :usage;

namespace lyo {
namespace {

UsageRecord read_record(const files::File& file, const std::string& path) {
    UsageRecord out;
    const auto info = files::status(file, path);
    if (!info || !info->is_regular || info->size != sizeof(UsageRecord)) return {};
    if (!files::read_at(file, 0, std::as_writable_bytes(std::span(&out, 1)), path)) return {};
    if (out.magic != UsageRecord{}.magic || out.bytes < 0) return {};
    return out;
}

}  // namespace

UsageRecord read_usage(const std::string& path) {
    const auto file = files::open_existing(path);
    return file && file->is_open() ? read_record(*file, path) : UsageRecord{};
}

bool change_usage(const std::string& path, const std::function<void(UsageRecord&)>& change, UsageRecord* after) {
    const auto file = files::open_or_make(path);
    if (!file) return false;
    // Its holders have it for microseconds; one that was stopped in between must not stop the others.
    bool locked = false;
    for (int attempt = 0; attempt < 20 && !locked; ++attempt) {
        if (attempt > 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
        const auto got = files::try_lock(*file, path);
        if (!got) return false;
        locked = *got;
    }
    if (!locked) return false;
    UsageRecord record = read_record(*file, path);
    change(record);
    record.bytes = std::max<std::int64_t>(record.bytes, 0);
    if (!files::write_at(*file, 0, std::as_bytes(std::span(&record, 1)), path)) return false;
    if (after != nullptr) *after = record;
    return true;
}

}  // namespace lyo
