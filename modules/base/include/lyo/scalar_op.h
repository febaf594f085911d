// The instruction set of loop programs ("cpu bytecode", and the source of generated CUDA kernels), as plain C++:
// the artifact format, the CPU kernels and the CUDA code generator share this one list. The numbers are part of
// the artifact format: append only, and raise the format version.
#pragma once

#include <cstdint>

namespace lyo {

/// What a register holds. Storage dtypes map to it: boolean/u8/i8/i16/i32 -> i32, i64 -> i64,
/// f16/bf16/f32 -> f32, f64 -> f64. A boolean is 0 or 1 in an i32 register.
enum class RegClass : std::uint8_t { f32, f64, i32, i64 };

/// Which operand classes an operation accepts and which class it gives.
///   arith    any class -> the same class        real     f32/f64 -> the same class
///   integer  i32/i64 -> the same class          compare  any class -> i32 holding 0 or 1
///   test     f32/f64 -> i32 holding 0 or 1      memory, reduce: see each entry
enum class OpKind : std::uint8_t { arith, real, integer, compare, test, memory, reduce };

// X(name, arity, kind). Meaning follows PyTorch's eager CPU kernels: maximum/minimum and the max/min reductions
// propagate NaN, fmax/fmin ignore it; floor_div and remainder follow Python's sign rule, trunc_div and fmod C's;
// integer division or remainder by zero gives 0; shifts by less than 0 or by the width or more give 0 (shr: the
// sign). round is half to even. i32/i64 arithmetic wraps.
#define LYO_SCALAR_OPS(X)       \
    X(load, 0, memory)          \
    X(store, 1, memory)         \
    X(iota, 0, memory)          \
    X(constant, 0, memory)      \
    X(symbol, 0, memory)        \
    X(load_at, 1, memory)       \
    X(check_index, 1, memory)   \
    X(cast, 1, memory)          \
    X(select, 3, memory)        \
    X(neg, 1, arith)            \
    X(abs, 1, arith)            \
    X(sign, 1, arith)           \
    X(add, 2, arith)            \
    X(sub, 2, arith)            \
    X(mul, 2, arith)            \
    X(maximum, 2, arith)        \
    X(minimum, 2, arith)        \
    X(fmax, 2, arith)           \
    X(fmin, 2, arith)           \
    X(floor_div, 2, arith)      \
    X(trunc_div, 2, arith)      \
    X(remainder, 2, arith)      \
    X(fmod, 2, arith)           \
    X(pow, 2, arith)            \
    X(div, 2, real)             \
    X(atan2, 2, real)           \
    X(copysign, 2, real)        \
    X(hypot, 2, real)           \
    X(sqrt, 1, real)            \
    X(rsqrt, 1, real)           \
    X(reciprocal, 1, real)      \
    X(exp, 1, real)             \
    X(exp2, 1, real)            \
    X(expm1, 1, real)           \
    X(log, 1, real)             \
    X(log2, 1, real)            \
    X(log10, 1, real)           \
    X(log1p, 1, real)           \
    X(sin, 1, real)             \
    X(cos, 1, real)             \
    X(tan, 1, real)             \
    X(asin, 1, real)            \
    X(acos, 1, real)            \
    X(atan, 1, real)            \
    X(sinh, 1, real)            \
    X(cosh, 1, real)            \
    X(tanh, 1, real)            \
    X(asinh, 1, real)           \
    X(acosh, 1, real)           \
    X(atanh, 1, real)           \
    X(erf, 1, real)             \
    X(erfc, 1, real)            \
    X(sigmoid, 1, real)         \
    X(floor, 1, real)           \
    X(ceil, 1, real)            \
    X(round, 1, real)           \
    X(trunc, 1, real)           \
    X(isnan, 1, test)           \
    X(isinf, 1, test)           \
    X(bit_not, 1, integer)      \
    X(bit_and, 2, integer)      \
    X(bit_or, 2, integer)       \
    X(bit_xor, 2, integer)      \
    X(shl, 2, integer)          \
    X(shr, 2, integer)          \
    X(eq, 2, compare)           \
    X(ne, 2, compare)           \
    X(lt, 2, compare)           \
    X(le, 2, compare)           \
    X(gt, 2, compare)           \
    X(ge, 2, compare)           \
    X(reduce_sum, 1, reduce)    \
    X(reduce_prod, 1, reduce)   \
    X(reduce_max, 1, reduce)    \
    X(reduce_min, 1, reduce)    \
    X(reduce_argmax, 1, reduce) \
    X(reduce_argmin, 1, reduce)

/// One operation of a loop program.
enum class ScalarOp : std::uint8_t {
#define LYO_X(name, arity, kind) name,
    LYO_SCALAR_OPS(LYO_X)
#undef LYO_X
};

}  // namespace lyo
