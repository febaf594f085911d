// Whatever loads is hydrated, called, and gives back its bytes by every way there is.
#include <cstddef>
#include <cstdint>
#include <span>

import lyo.base;
import lyo.fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    lyo::fuzz::check_roundtrip(lyo::Bytes::borrow(std::as_bytes(std::span(data, size))));
    return 0;
}
