module;
#include "lyo/dtype.h"

module lyo.base;

import lyo.prelude;

namespace lyo {
namespace {
constexpr std::string_view names[] = {
#define LYO_X(name, bytes) #name,
    LYO_DTYPES(LYO_X)
#undef LYO_X
};
}  // namespace

std::string_view to_string(DType dtype) noexcept { return names[static_cast<std::uint8_t>(dtype)]; }

std::optional<DType> parse_dtype(std::string_view name) noexcept {
    for (std::uint8_t i = 0; i < dtype_count; ++i)
        if (names[i] == name) return static_cast<DType>(i);
    return std::nullopt;
}

float f16_to_float(std::uint16_t bits) noexcept {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
    const std::uint32_t exponent = (bits >> 10) & 31u;
    const std::uint32_t mantissa = bits & 1023u;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
}

float bf16_to_float(std::uint16_t bits) noexcept { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t float_to_f16(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65536 or beyond
    if (magnitude < 0x38800000u) {
        // Subnormal result: adding 0.5 leaves the value, in units of 2^-24, rounded in the low bits.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

std::uint16_t float_to_bf16(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace lyo
