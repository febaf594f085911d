module lyo.artifact;

import lyo.prelude;
import lyo.base;
import :codec;

namespace lyo::codec {

bool is_utf8(std::string_view text) noexcept {
    for (std::size_t i = 0; i < text.size();) {
        const auto at = [&](std::size_t k) { return k < text.size() ? static_cast<std::uint8_t>(text[k]) : 0u; };
        const std::uint32_t first = at(i);
        const std::size_t length = first < 0x80   ? 1
                                   : first < 0xc2 ? 0
                                   : first < 0xe0 ? 2
                                   : first < 0xf0 ? 3
                                   : first < 0xf5 ? 4
                                                  : 0;
        if (length == 0) return false;
        for (std::size_t k = 1; k < length; ++k)
            if ((at(i + k) & 0xc0u) != 0x80u) return false;
        const std::uint32_t second = at(i + 1);
        if (first == 0xe0 && second < 0xa0) return false;
        if (first == 0xed && second > 0x9f) return false;
        if (first == 0xf0 && second < 0x90) return false;
        if (first == 0xf4 && second > 0x8f) return false;
        i += length;
    }
    return true;
}

}  // namespace lyo::codec
