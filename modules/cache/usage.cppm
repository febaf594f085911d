// The file that processes keep together: bytes in the store and what all of them counted.
module lyo.cache:usage;

import lyo.prelude;
import lyo.base;
import :counters;
import :files;

namespace lyo {

/// As it lies in the file. One of another magic or size counts as zeros: it is only bookkeeping.
struct UsageRecord {
    std::array<char, 8> magic = {'L', 'Y', 'O', 'U', 'S', 'E', '0', '1'};
    std::int64_t bytes = 0;
    CounterValues totals{};
};

/// Zeros where there is none.
UsageRecord read_usage(const std::string& path);
/// Changes the record under its lock. Nothing, and false, when another process holds the lock for long, or the file
/// cannot be written: the caller tries again later, with more.
bool change_usage(const std::string& path, const std::function<void(UsageRecord&)>& change,
                  UsageRecord* after = nullptr);

}  // namespace lyo
