// The operations of loop programs, shared by the graph (how an operator is made of them), the artifact format and the
// kernels. The list itself is plain C++, in lyo/scalar_op.h.
module;
#include "lyo/scalar_op.h"

export module lyo.base:scalar_op;

import lyo.prelude;
import :dtype;

export namespace lyo {
using lyo::OpKind;
using lyo::RegClass;
using lyo::ScalarOp;
}  // namespace lyo

namespace lyo {

export inline constexpr std::uint8_t scalar_op_count = 0
#define LYO_X(name, arity, kind) +1
    LYO_SCALAR_OPS(LYO_X)
#undef LYO_X
    ;
export inline constexpr std::uint8_t reg_class_count = 4;

/// "add", "reduce_sum", ...
export std::string_view to_string(ScalarOp op) noexcept;
export std::string_view to_string(RegClass cls) noexcept;

/// How many registers the operation reads.
export constexpr int arity_of(ScalarOp op) noexcept {
    constexpr std::uint8_t arities[] = {
#define LYO_X(name, arity, kind) arity,
        LYO_SCALAR_OPS(LYO_X)
#undef LYO_X
    };
    return arities[static_cast<std::uint8_t>(op)];
}
export constexpr OpKind kind_of(ScalarOp op) noexcept {
    constexpr OpKind kinds[] = {
#define LYO_X(name, arity, kind) OpKind::kind,
        LYO_SCALAR_OPS(LYO_X)
#undef LYO_X
    };
    return kinds[static_cast<std::uint8_t>(op)];
}
/// The class in which values of a dtype are computed.
export constexpr RegClass class_of(DType dtype) noexcept {
    if (dtype == DType::f64) return RegClass::f64;
    if (dtype == DType::i64) return RegClass::i64;
    return is_float(dtype) ? RegClass::f32 : RegClass::i32;
}

}  // namespace lyo
