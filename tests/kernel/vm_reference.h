// What loop programs mean, once more and plainly: one element after the other, one instruction after the other.
// Also a small builder of programs and tensors for the tests. Tensors lie at odd addresses and end where their
// allocation ends, so that a sanitizer sees every access that is too wide or assumes alignment.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "vm.h"

namespace lyo::cpu::test {

inline std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> sets{&kernels_baseline};
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2) sets.push_back(&kernels_avx2);
    if (avx512) sets.push_back(&kernels_avx512);
    static bool told = false;
    if (!told && !avx2) std::printf("not run, no such processor: avx2\n");
    if (!told && !avx512) std::printf("not run, no such processor: avx512\n");
    told = true;
    return sets;
}

inline std::size_t bytes_of(DType t) {
    constexpr std::size_t sizes[] = {
#define LYO_X(name, bytes) bytes,
        LYO_DTYPES(LYO_X)
#undef LYO_X
    };
    return sizes[static_cast<int>(t)];
}

inline RegClass class_of(DType t) {
    switch (t) {
        case DType::i64:
            return RegClass::i64;
        case DType::f64:
            return RegClass::f64;
        case DType::f16:
        case DType::bf16:
        case DType::f32:
            return RegClass::f32;
        default:
            return RegClass::i32;
    }
}

inline const char* name_of(ScalarOp op) {
    constexpr const char* names[] = {
#define LYO_X(name, arity, kind) #name,
        LYO_SCALAR_OPS(LYO_X)
#undef LYO_X
    };
    return names[static_cast<int>(op)];
}

/// A register's lane. Only the member of its class counts.
struct Value {
    double real = 0;
    std::int64_t integer = 0;
};

inline float half_bits_to_float(std::uint16_t h) {
    int exponent = (h >> 10) & 31, mantissa = h & 1023;
    float v = exponent == 31
                  ? (mantissa ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity())
              : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                              : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
    return h & 0x8000 ? -v : v;
}

/// Rounds to `digits` mantissa bits and the exponent range of a small format, in double: half to even.
inline std::uint16_t small_float_bits(float x, int mantissa_bits, int lowest_exponent, std::uint16_t infinity) {
    auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
    if (std::isnan(x)) return static_cast<std::uint16_t>(sign | infinity | (1 << (mantissa_bits - 1)));
    double a = std::fabs(static_cast<double>(x));
    if (std::isinf(a)) return static_cast<std::uint16_t>(sign | infinity);
    if (a == 0) return sign;
    int exponent = std::max(std::ilogb(a), lowest_exponent);
    double unit = std::ldexp(1.0, exponent - mantissa_bits);
    auto count = static_cast<std::int64_t>(std::nearbyint(a / unit));
    std::int64_t hidden = std::int64_t{1} << mantissa_bits;
    std::int64_t code = (exponent - lowest_exponent) * hidden + count;
    return static_cast<std::uint16_t>(sign | std::min<std::int64_t>(code, infinity));
}

inline std::uint16_t to_half_bits(float x) { return small_float_bits(x, 10, -14, 0x7c00); }
inline std::uint16_t to_bfloat_bits(float x) { return small_float_bits(x, 7, -126, 0x7f80); }
inline float bfloat_bits_to_float(std::uint16_t h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }

template <class T>
T read(const std::byte* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class T>
void write(std::byte* p, T v) {
    std::memcpy(p, &v, sizeof v);
}

inline Value load_element(const std::byte* p, DType t) {
    switch (t) {
        case DType::boolean:
            return {.integer = read<std::uint8_t>(p) != 0};
        case DType::u8:
            return {.integer = read<std::uint8_t>(p)};
        case DType::i8:
            return {.integer = read<std::int8_t>(p)};
        case DType::i16:
            return {.integer = read<std::int16_t>(p)};
        case DType::i32:
            return {.integer = read<std::int32_t>(p)};
        case DType::i64:
            return {.integer = read<std::int64_t>(p)};
        case DType::f16:
            return {.real = half_bits_to_float(read<std::uint16_t>(p))};
        case DType::bf16:
            return {.real = bfloat_bits_to_float(read<std::uint16_t>(p))};
        case DType::f32:
            return {.real = read<float>(p)};
        case DType::f64:
            return {.real = read<double>(p)};
    }
    std::abort();
}

inline void store_element(std::byte* p, DType t, Value v) {
    auto f = static_cast<float>(v.real);
    switch (t) {
        case DType::boolean:
            return write(p, static_cast<std::uint8_t>(v.integer != 0));
        case DType::u8:
        case DType::i8:
            return write(p, static_cast<std::uint8_t>(v.integer));
        case DType::i16:
            return write(p, static_cast<std::uint16_t>(v.integer));
        case DType::i32:
            return write(p, static_cast<std::uint32_t>(v.integer));
        case DType::i64:
            return write(p, v.integer);
        case DType::f16:
            return write(p, to_half_bits(f));
        case DType::bf16:
            return write(p, to_bfloat_bits(f));
        case DType::f32:
            return write(p, f);
        case DType::f64:
            return write(p, v.real);
    }
}

inline bool is_real(RegClass c) { return c == RegClass::f32 || c == RegClass::f64; }

inline Value as_integer(std::int64_t x, RegClass c) {
    return {.integer = c == RegClass::i32 ? static_cast<std::int32_t>(x) : x};
}
inline Value as_real(double x, RegClass c) { return {.real = c == RegClass::f32 ? static_cast<float>(x) : x}; }

inline std::int64_t truncate(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? static_cast<std::int64_t>(x) : std::numeric_limits<std::int64_t>::min();
}

inline Value cast_value(Value v, RegClass from, DType to) {
    std::byte raw[8];
    RegClass cls = class_of(to);
    if (to == DType::boolean) return {.integer = is_real(from) ? v.real != 0 : v.integer != 0};
    Value w;
    if (is_real(cls)) {
        w = !is_real(from) ? cls == RegClass::f32 ? Value{.real = static_cast<float>(v.integer)}
                                                  : Value{.real = static_cast<double>(v.integer)}
                           : as_real(v.real, cls);
    } else {
        w.integer = is_real(from) ? truncate(v.real) : v.integer;
    }
    store_element(raw, to, w);
    return load_element(raw, to);
}

/// Floating arithmetic in the class's own precision F.
template <class F>
double real_op(ScalarOp op, F a, F b) {
    double d = a;
    switch (op) {
        case ScalarOp::neg:
            return -a;
        case ScalarOp::abs:
            return std::fabs(a);
        case ScalarOp::sign:
            return (a > 0) - (a < 0);
        case ScalarOp::add:
            return static_cast<F>(a + b);
        case ScalarOp::sub:
            return static_cast<F>(a - b);
        case ScalarOp::mul:
            return static_cast<F>(a * b);
        case ScalarOp::maximum:
            return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
        case ScalarOp::minimum:
            return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
        case ScalarOp::fmax:
            return std::fmax(a, b);
        case ScalarOp::fmin:
            return std::fmin(a, b);
        case ScalarOp::trunc_div:
            return std::trunc(static_cast<F>(a / b));
        case ScalarOp::fmod:
            return std::fmod(a, b);
        case ScalarOp::remainder: {
            F r = std::fmod(a, b);
            return r != 0 && (r < 0) != (b < 0) ? static_cast<F>(r + b) : r;
        }
        case ScalarOp::floor_div: {
            if (b == 0) return static_cast<F>(a / b);
            F r = std::fmod(a, b), q = (a - r) / b;
            if (r != 0 && (r < 0) != (b < 0)) q -= 1;
            if (q == 0) return std::copysign(F{0}, a / b);
            F whole = std::floor(q);
            return q - whole > F{0.5} ? static_cast<F>(whole + 1) : whole;
        }
        case ScalarOp::pow:
            return static_cast<F>(std::pow(d, static_cast<double>(b)));
        case ScalarOp::div:
            return static_cast<F>(a / b);
        case ScalarOp::atan2:
            return std::atan2(d, static_cast<double>(b));
        case ScalarOp::copysign:
            return std::copysign(a, b);
        case ScalarOp::hypot:
            return std::hypot(d, static_cast<double>(b));
        case ScalarOp::sqrt:
            return static_cast<F>(std::sqrt(d));
        case ScalarOp::rsqrt:
            return 1 / std::sqrt(d);
        case ScalarOp::reciprocal:
            return static_cast<F>(1 / a);
        case ScalarOp::exp:
            return std::exp(d);
        case ScalarOp::exp2:
            return std::exp2(d);
        case ScalarOp::expm1:
            return std::expm1(d);
        case ScalarOp::log:
            return std::log(d);
        case ScalarOp::log2:
            return std::log2(d);
        case ScalarOp::log10:
            return std::log10(d);
        case ScalarOp::log1p:
            return std::log1p(d);
        case ScalarOp::sin:
            return std::sin(d);
        case ScalarOp::cos:
            return std::cos(d);
        case ScalarOp::tan:
            return std::tan(d);
        case ScalarOp::asin:
            return std::asin(d);
        case ScalarOp::acos:
            return std::acos(d);
        case ScalarOp::atan:
            return std::atan(d);
        case ScalarOp::sinh:
            return std::sinh(d);
        case ScalarOp::cosh:
            return std::cosh(d);
        case ScalarOp::tanh:
            return std::tanh(d);
        case ScalarOp::asinh:
            return std::asinh(d);
        case ScalarOp::acosh:
            return std::acosh(d);
        case ScalarOp::atanh:
            return std::atanh(d);
        case ScalarOp::erf:
            return std::erf(d);
        case ScalarOp::erfc:
            return std::erfc(d);
        case ScalarOp::sigmoid:
            return d < 0 ? std::exp(d) / (1 + std::exp(d)) : 1 / (1 + std::exp(-d));
        case ScalarOp::floor:
            return std::floor(a);
        case ScalarOp::ceil:
            return std::ceil(a);
        case ScalarOp::round:
            return std::nearbyint(a);
        case ScalarOp::trunc:
            return std::trunc(a);
        default:
            std::abort();
    }
}

inline std::int64_t integer_op(ScalarOp op, std::int64_t a, std::int64_t b, int width) {
    auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
    auto wrapped = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
    auto quotient = [&] { return b == 0 ? 0 : b == -1 ? wrapped(0 - ua) : a / b; };
    auto rest = [&] { return b == 0 || b == -1 ? 0 : a % b; };
    bool shiftable = b >= 0 && b < width;
    switch (op) {
        case ScalarOp::neg:
            return wrapped(0 - ua);
        case ScalarOp::abs:
            return a < 0 ? wrapped(0 - ua) : a;
        case ScalarOp::sign:
            return (a > 0) - (a < 0);
        case ScalarOp::add:
            return wrapped(ua + ub);
        case ScalarOp::sub:
            return wrapped(ua - ub);
        case ScalarOp::mul:
            return wrapped(ua * ub);
        case ScalarOp::maximum:
        case ScalarOp::fmax:
            return std::max(a, b);
        case ScalarOp::minimum:
        case ScalarOp::fmin:
            return std::min(a, b);
        case ScalarOp::trunc_div:
            return quotient();
        case ScalarOp::fmod:
            return rest();
        case ScalarOp::floor_div:
            return quotient() - (rest() != 0 && (rest() < 0) != (b < 0));
        case ScalarOp::remainder:
            return rest() != 0 && (rest() < 0) != (b < 0) ? rest() + b : rest();
        case ScalarOp::pow: {
            if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
            std::uint64_t result = 1;
            for (; ub; ub >>= 1, ua *= ua) result *= ub & 1 ? ua : 1;
            return wrapped(result);
        }
        case ScalarOp::bit_not:
            return ~a;
        case ScalarOp::bit_and:
            return a & b;
        case ScalarOp::bit_or:
            return a | b;
        case ScalarOp::bit_xor:
            return a ^ b;
        case ScalarOp::shl:
            return shiftable ? wrapped(ua << b) : 0;
        case ScalarOp::shr:
            return a >> (shiftable ? b : width - 1);
        default:
            std::abort();
    }
}

inline bool is_comparison(ScalarOp op) { return op >= ScalarOp::eq && op <= ScalarOp::ge; }
inline bool is_reduction(ScalarOp op) { return op >= ScalarOp::reduce_sum; }

template <class T>
bool compare_values(ScalarOp op, T a, T b) {
    switch (op) {
        case ScalarOp::eq:
            return a == b;
        case ScalarOp::ne:
            return a != b;
        case ScalarOp::lt:
            return a < b;
        case ScalarOp::le:
            return a <= b;
        case ScalarOp::gt:
            return a > b;
        default:
            return a >= b;
    }
}

inline Value evaluate(ScalarOp op, RegClass cls, Value a, Value b) {
    if (is_comparison(op)) {
        return {.integer =
                    is_real(cls) ? compare_values(op, a.real, b.real) : compare_values(op, a.integer, b.integer)};
    }
    if (op == ScalarOp::isnan) return {.integer = std::isnan(a.real)};
    if (op == ScalarOp::isinf) return {.integer = std::isinf(a.real)};
    switch (cls) {
        case RegClass::f32:
            return as_real(real_op<float>(op, static_cast<float>(a.real), static_cast<float>(b.real)), cls);
        case RegClass::f64:
            return as_real(real_op<double>(op, a.real, b.real), cls);
        case RegClass::i32:
            return as_integer(integer_op(op, a.integer, b.integer, 32), cls);
        case RegClass::i64:
            return as_integer(integer_op(op, a.integer, b.integer, 64), cls);
    }
    std::abort();
}

}  // namespace lyo::cpu::test
