// Element types, and the conversions between the half types and float.
module;
#include "lyo/dtype.h"

export module lyo.base:dtype;

import lyo.prelude;
import :result;

export namespace lyo {
using lyo::DType;
}

namespace lyo {

export inline constexpr std::uint8_t dtype_count = 0
#define LYO_X(name, bytes) +1
    LYO_DTYPES(LYO_X)
#undef LYO_X
    ;

/// Bytes of one element.
export constexpr std::size_t size_of(DType dtype) noexcept {
    constexpr std::uint8_t sizes[] = {
#define LYO_X(name, bytes) bytes,
        LYO_DTYPES(LYO_X)
#undef LYO_X
    };
    return sizes[static_cast<std::uint8_t>(dtype)];
}
/// "f32", "boolean", ...
export std::string_view to_string(DType dtype) noexcept;
/// The dtype of that name, as `to_string` gives it.
export std::optional<DType> parse_dtype(std::string_view name) noexcept;

export constexpr bool is_float(DType d) noexcept { return d >= DType::f16; }
export constexpr bool is_integer(DType d) noexcept { return d >= DType::u8 && d <= DType::i64; }
/// The result dtype of an operation on two tensors of at least one dimension (torch.promote_types).
export constexpr DType promote(DType a, DType b) noexcept {
    if (a == b) return a;
    const DType lo = std::min(a, b), hi = std::max(a, b);
    if (lo == DType::u8 && hi == DType::i8) return DType::i16;
    if (lo == DType::f16 && hi == DType::bf16) return DType::f32;
    return hi;
}

/// IEEE 754 binary16 and bfloat16 to float, exactly; and from float, to nearest even (NaN stays NaN).
export float f16_to_float(std::uint16_t bits) noexcept;
export float bf16_to_float(std::uint16_t bits) noexcept;
export std::uint16_t float_to_f16(float value) noexcept;
export std::uint16_t float_to_bf16(float value) noexcept;

}  // namespace lyo
