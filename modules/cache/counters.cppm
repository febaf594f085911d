// What a cache did: counts, bytes and nanoseconds.
export module lyo.cache:counters;

import lyo.prelude;
import lyo.base;

namespace lyo {

/// One counter; times are in nanoseconds.
export enum class Counter : std::uint8_t {
    hits,            ///< answers from the local store
    remote_hits,     ///< answers from the store behind it
    misses,          ///< neither had it
    waits,           ///< answers that another process or thread was making
    makes,           ///< values that were made (compiled)
    puts,            ///< entries written
    put_errors,      ///< entries that could not be written
    evictions,       ///< entries removed to keep the size limit
    corrupt,         ///< entries that failed their check and were moved aside
    remote_errors,   ///< time-outs and failures of the store behind
    remote_refused,  ///< values from the store behind that were not accepted: wrong, too large, unsigned
    bytes_read,
    bytes_written,
    lookup_ns,
    wait_ns,
    make_ns,
    put_ns,
};
export inline constexpr std::size_t counter_count = 17;
export inline constexpr std::array<std::string_view, counter_count> counter_names = {
    "hits",          "remote_hits", "misses",  "waits",         "makes",          "puts",
    "put_errors",    "evictions",   "corrupt", "remote_errors", "remote_refused", "bytes_read",
    "bytes_written", "lookup_ns",   "wait_ns", "make_ns",       "put_ns"};
/// What each counts, for `# HELP`.
export std::string_view help(Counter counter) noexcept;

export using CounterValues = std::array<std::uint64_t, counter_count>;

/// Counters that many threads add to.
export class Counters {
  public:
    void add(Counter counter, std::uint64_t n = 1) noexcept {
        values_[static_cast<std::size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
    }
    std::uint64_t operator[](Counter counter) const noexcept {
        return values_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
    }
    CounterValues values() const noexcept {
        CounterValues out{};
        for (std::size_t i = 0; i < counter_count; ++i) out[i] = values_[i].load(std::memory_order_relaxed);
        return out;
    }

  private:
    std::array<std::atomic<std::uint64_t>, counter_count> values_{};
};

/// Adds the time of its life to a counter.
export class Stopwatch {
  public:
    Stopwatch(Counters& counters, Counter counter) noexcept : counters_(&counters), counter_(counter) {}
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;
    ~Stopwatch() {
        const auto spent = std::chrono::steady_clock::now() - start_;
        counters_->add(counter_,
                       static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()));
    }

  private:
    Counters* counters_;
    Counter counter_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The text format of Prometheus: "# HELP", "# TYPE" and one sample a counter, named lyo_cache_hits_total and so on;
/// `entries` and `bytes` are gauges.
export std::string to_prometheus(const CounterValues& values, std::uint64_t entries, std::uint64_t bytes);

}  // namespace lyo
