// libFuzzer's mutator for artifacts: mostly changes of the decoded form, sometimes libFuzzer's own, digests repaired.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

import lyo.fuzz;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    lyo::fuzz::Random random(seed);
    if (size > 0 && !random.one_in(4)) {
        const auto out = lyo::fuzz::mutate(std::as_bytes(std::span(data, size)), random, max_size);
        if (!out.empty()) {
            std::memcpy(data, out.data(), out.size());
            return out.size();
        }
    }
    const std::size_t changed = LLVMFuzzerMutate(data, size, max_size);
    if (!random.one_in(8)) lyo::fuzz::reseal(std::as_writable_bytes(std::span(data, changed)));
    return changed;
}
