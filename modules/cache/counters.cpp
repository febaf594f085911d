module lyo.cache;

import lyo.prelude;
import lyo.base;
import :counters;

namespace lyo {

std::string_view help(Counter counter) noexcept {
    switch (counter) {
        case Counter::hits:
            return "Answers from the local store.";
        case Counter::remote_hits:
            return "Answers from the store behind the local one.";
        case Counter::misses:
            return "Questions that no store could answer.";
        case Counter::waits:
            return "Answers that another process or thread was making.";
        case Counter::makes:
            return "Values that were made.";
        case Counter::puts:
            return "Entries written.";
        case Counter::put_errors:
            return "Entries that could not be written.";
        case Counter::evictions:
            return "Entries removed to keep the size limit.";
        case Counter::corrupt:
            return "Entries that failed their check and were moved aside.";
        case Counter::remote_errors:
            return "Time-outs and failures of the store behind.";
        case Counter::remote_refused:
            return "Values from the store behind that were not accepted.";
        case Counter::bytes_read:
            return "Bytes of entries read.";
        case Counter::bytes_written:
            return "Bytes of entries written.";
        case Counter::lookup_ns:
            return "Nanoseconds spent looking up.";
        case Counter::wait_ns:
            return "Nanoseconds spent waiting for others.";
        case Counter::make_ns:
            return "Nanoseconds spent making values.";
        case Counter::put_ns:
            return "Nanoseconds spent writing entries.";
    }
    return "";
}

std::string to_prometheus(const CounterValues& values, std::uint64_t entries, std::uint64_t bytes) {
    std::string out;
    const auto sample = [&](std::string_view name, std::string_view what, std::string_view type, std::uint64_t value) {
        out += cat("# HELP lyo_cache_", name, " ", what, "\n# TYPE lyo_cache_", name, " ", type, "\nlyo_cache_", name,
                   " ", value, "\n");
    };
    for (std::size_t i = 0; i < counter_count; ++i)
        sample(cat(counter_names[i], "_total"), help(static_cast<Counter>(i)), "counter", values[i]);
    sample("entries", "Entries in the local store.", "gauge", entries);
    sample("bytes", "Bytes of entries in the local store.", "gauge", bytes);
    return out;
}

}  // namespace lyo
