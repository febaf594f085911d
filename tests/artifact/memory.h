// How much memory the process has taken through operator new, and how often: replaced in memory.cpp of this binary.
#pragma once

#include <cstddef>

namespace lyo_test {

struct Memory {
    std::size_t live;   ///< bytes now
    std::size_t peak;   ///< most bytes at a time since the last reset
    std::size_t calls;  ///< allocations since the last reset
};

/// Peak and calls start anew from what is live now.
void reset_memory() noexcept;
Memory memory() noexcept;

}  // namespace lyo_test
