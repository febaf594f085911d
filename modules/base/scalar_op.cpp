module;
#include "lyo/scalar_op.h"

module lyo.base;

import lyo.prelude;

namespace lyo {

std::string_view to_string(ScalarOp op) noexcept {
    static constexpr std::string_view names[] = {
#define LYO_X(name, arity, kind) #name,
        LYO_SCALAR_OPS(LYO_X)
#undef LYO_X
    };
    return names[static_cast<std::uint8_t>(op)];
}

std::string_view to_string(RegClass cls) noexcept {
    static constexpr std::string_view names[] = {"f32", "f64", "i32", "i64"};
    return names[static_cast<std::uint8_t>(cls)];
}

}  // namespace lyo
