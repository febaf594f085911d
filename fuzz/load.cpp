// Any bytes: refused with an error that names the place, or accepted, and then encoding gives the same bytes.
#include <cstddef>
#include <cstdint>
#include <span>

import lyo.base;
import lyo.fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    lyo::fuzz::check_load(lyo::Bytes::borrow(std::as_bytes(std::span(data, size))));
    return 0;
}
