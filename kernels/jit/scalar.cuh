// Scalars of generated kernels: storage types, conversions, and the operations of lyo/scalar_op.h with the meaning that
// modules/kernel/cpu/vm.h gives them. Compiled by NVRTC without any other header.
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// Storage of the two half types: their bits.
struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};
struct boolean {
    u8 value;
};

__device__ __forceinline__ float reg(float x) { return x; }
__device__ __forceinline__ double reg(double x) { return x; }
__device__ __forceinline__ i64 reg(i64 x) { return x; }
__device__ __forceinline__ i32 reg(i32 x) { return x; }
__device__ __forceinline__ i32 reg(i16 x) { return x; }
__device__ __forceinline__ i32 reg(i8 x) { return x; }
__device__ __forceinline__ i32 reg(u8 x) { return x; }
__device__ __forceinline__ i32 reg(boolean x) { return x.value; }
__device__ __forceinline__ float reg(f16 x) {
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
    return out;
}
__device__ __forceinline__ float reg(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

__device__ __forceinline__ u16 half_bits(float x) {
    u16 out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}
__device__ __forceinline__ u16 bfloat_bits(float x) {
    u32 out;  // the instruction converts two; the lower half is the second
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(0.0f), "f"(x));
    return (u16)out;
}

// A real as an integer: truncated; what does not fit, and NaN, give the lowest int64, as on x86.
__device__ __forceinline__ i64 truncated(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (i64)x : (i64)0x8000000000000000ull;
}
__device__ __forceinline__ i64 truncated(float x) {
    return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (i64)x : (i64)0x8000000000000000ull;
}
__device__ __forceinline__ i64 truncated(i32 x) { return x; }
__device__ __forceinline__ i64 truncated(i64 x) { return x; }

// Conversion of a register to a dtype: the value that a register then holds.
template <class T> __device__ __forceinline__ i32 to_boolean(T x) { return x != 0; }
template <class T> __device__ __forceinline__ i32 to_u8(T x) { return (u8)truncated(x); }
template <class T> __device__ __forceinline__ i32 to_i8(T x) { return (i8)truncated(x); }
template <class T> __device__ __forceinline__ i32 to_i16(T x) { return (i16)truncated(x); }
template <class T> __device__ __forceinline__ i32 to_i32(T x) { return (i32)truncated(x); }
template <class T> __device__ __forceinline__ i64 to_i64(T x) { return truncated(x); }
template <class T> __device__ __forceinline__ float to_f32(T x) { return (float)x; }
template <class T> __device__ __forceinline__ double to_f64(T x) { return (double)x; }
template <class T> __device__ __forceinline__ float to_f16(T x) { return reg(f16{half_bits((float)x)}); }
template <class T> __device__ __forceinline__ float to_bf16(T x) { return reg(bf16{bfloat_bits((float)x)}); }

// A register as storage.
template <class S> struct Stored;
template <> struct Stored<float> {
    template <class T> static __device__ __forceinline__ float of(T x) { return (float)x; }
};
template <> struct Stored<double> {
    template <class T> static __device__ __forceinline__ double of(T x) { return (double)x; }
};
template <> struct Stored<i64> {
    template <class T> static __device__ __forceinline__ i64 of(T x) { return to_i64(x); }
};
template <> struct Stored<i32> {
    template <class T> static __device__ __forceinline__ i32 of(T x) { return to_i32(x); }
};
template <> struct Stored<i16> {
    template <class T> static __device__ __forceinline__ i16 of(T x) { return (i16)to_i16(x); }
};
template <> struct Stored<i8> {
    template <class T> static __device__ __forceinline__ i8 of(T x) { return (i8)to_i8(x); }
};
template <> struct Stored<u8> {
    template <class T> static __device__ __forceinline__ u8 of(T x) { return (u8)to_u8(x); }
};
template <> struct Stored<boolean> {
    template <class T> static __device__ __forceinline__ boolean of(T x) { return {(u8)(x != 0)}; }
};
template <> struct Stored<f16> {
    template <class T> static __device__ __forceinline__ f16 of(T x) { return {half_bits((float)x)}; }
};
template <> struct Stored<bf16> {
    template <class T> static __device__ __forceinline__ bf16 of(T x) { return {bfloat_bits((float)x)}; }
};

// Arithmetic. Integers wrap: they are computed unsigned.
__device__ __forceinline__ i32 op_neg(i32 a) { return (i32)(0u - (u32)a); }
__device__ __forceinline__ i64 op_neg(i64 a) { return (i64)(0ull - (u64)a); }
__device__ __forceinline__ float op_neg(float a) { return -a; }
__device__ __forceinline__ double op_neg(double a) { return -a; }
__device__ __forceinline__ i32 op_abs(i32 a) { return a < 0 ? op_neg(a) : a; }
__device__ __forceinline__ i64 op_abs(i64 a) { return a < 0 ? op_neg(a) : a; }
__device__ __forceinline__ float op_abs(float a) { return fabsf(a); }
__device__ __forceinline__ double op_abs(double a) { return fabs(a); }
template <class T> __device__ __forceinline__ T op_sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }

#define LYO_WRAPPING(name, symbol)                                                                 \
    __device__ __forceinline__ i32 op_##name(i32 a, i32 b) { return (i32)((u32)a symbol(u32) b); } \
    __device__ __forceinline__ i64 op_##name(i64 a, i64 b) { return (i64)((u64)a symbol(u64) b); }
LYO_WRAPPING(add, +)
LYO_WRAPPING(sub, -)
LYO_WRAPPING(mul, *)
__device__ __forceinline__ float op_add(float a, float b) { return a + b; }
__device__ __forceinline__ float op_sub(float a, float b) { return a - b; }
__device__ __forceinline__ float op_mul(float a, float b) { return a * b; }
__device__ __forceinline__ double op_add(double a, double b) { return a + b; }
__device__ __forceinline__ double op_sub(double a, double b) { return a - b; }
__device__ __forceinline__ double op_mul(double a, double b) { return a * b; }
__device__ __forceinline__ float op_div(float a, float b) { return a / b; }
__device__ __forceinline__ double op_div(double a, double b) { return a / b; }

template <class T> __device__ __forceinline__ T op_maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> __device__ __forceinline__ T op_minimum(T a, T b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ float op_fmax(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double op_fmax(double a, double b) { return fmax(a, b); }
__device__ __forceinline__ i32 op_fmax(i32 a, i32 b) { return a > b ? a : b; }
__device__ __forceinline__ i64 op_fmax(i64 a, i64 b) { return a > b ? a : b; }
__device__ __forceinline__ float op_fmin(float a, float b) { return fminf(a, b); }
__device__ __forceinline__ double op_fmin(double a, double b) { return fmin(a, b); }
__device__ __forceinline__ i32 op_fmin(i32 a, i32 b) { return a < b ? a : b; }
__device__ __forceinline__ i64 op_fmin(i64 a, i64 b) { return a < b ? a : b; }

template <class T> __device__ __forceinline__ T int_trunc_div(T a, T b) {
    return b == 0 ? 0 : b == -1 ? op_neg(a) : a / b;
}
template <class T> __device__ __forceinline__ T int_fmod(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class T> __device__ __forceinline__ T int_remainder(T a, T b) {
    const T r = int_fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T> __device__ __forceinline__ T int_floor_div(T a, T b) {
    if (b == 0) return 0;
    if (b == -1) return op_neg(a);
    const T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
template <class T> __device__ __forceinline__ T int_pow(T base, T exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    T out = 1;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) out = op_mul(out, base);
        base = op_mul(base, base);
    }
    return out;
}
#define LYO_INTEGER(name)                                                                    \
    __device__ __forceinline__ i32 op_##name(i32 a, i32 b) { return int_##name<i32>(a, b); } \
    __device__ __forceinline__ i64 op_##name(i64 a, i64 b) { return int_##name<i64>(a, b); }
LYO_INTEGER(trunc_div)
LYO_INTEGER(fmod)
LYO_INTEGER(remainder)
LYO_INTEGER(floor_div)
LYO_INTEGER(pow)

__device__ __forceinline__ float op_fmod(float a, float b) { return fmodf(a, b); }
__device__ __forceinline__ double op_fmod(double a, double b) { return fmod(a, b); }
__device__ __forceinline__ float op_trunc_div(float a, float b) { return truncf(a / b); }
__device__ __forceinline__ double op_trunc_div(double a, double b) { return trunc(a / b); }
__device__ __forceinline__ float op_pow(float a, float b) { return powf(a, b); }
__device__ __forceinline__ double op_pow(double a, double b) { return pow(a, b); }
template <class T> __device__ __forceinline__ T real_remainder(T a, T b) {
    const T r = op_fmod(a, b);
    return r != 0 && (b < 0) != (r < 0) ? r + b : r;
}
__device__ __forceinline__ float op_remainder(float a, float b) { return real_remainder(a, b); }
__device__ __forceinline__ double op_remainder(double a, double b) { return real_remainder(a, b); }
__device__ __forceinline__ float op_floor(float a) { return floorf(a); }
__device__ __forceinline__ double op_floor(double a) { return floor(a); }
__device__ __forceinline__ float op_copysign(float a, float b) { return copysignf(a, b); }
__device__ __forceinline__ double op_copysign(double a, double b) { return copysign(a, b); }
// c10's div_floor_floating.
template <class T> __device__ __forceinline__ T real_floor_div(T a, T b) {
    if (b == 0) return a / b;
    const T mod = op_fmod(a, b);
    T div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
    if (div == 0) return op_copysign((T)0, a / b);
    const T floored = op_floor(div);
    return div - floored > (T)0.5 ? floored + 1 : floored;
}
__device__ __forceinline__ float op_floor_div(float a, float b) { return real_floor_div(a, b); }
__device__ __forceinline__ double op_floor_div(double a, double b) { return real_floor_div(a, b); }

#define LYO_REAL1(name, single, wide)                                      \
    __device__ __forceinline__ float op_##name(float a) { return single; } \
    __device__ __forceinline__ double op_##name(double a) { return wide; }
#define LYO_REAL2(name, single, wide)                                               \
    __device__ __forceinline__ float op_##name(float a, float b) { return single; } \
    __device__ __forceinline__ double op_##name(double a, double b) { return wide; }
LYO_REAL2(atan2, atan2f(a, b), atan2(a, b))
LYO_REAL2(hypot, hypotf(a, b), hypot(a, b))
LYO_REAL1(sqrt, sqrtf(a), sqrt(a))
LYO_REAL1(rsqrt, rsqrtf(a), rsqrt(a))
LYO_REAL1(reciprocal, 1.0f / a, 1.0 / a)
LYO_REAL1(exp, expf(a), exp(a))
LYO_REAL1(exp2, exp2f(a), exp2(a))
LYO_REAL1(expm1, expm1f(a), expm1(a))
LYO_REAL1(log, logf(a), log(a))
LYO_REAL1(log2, log2f(a), log2(a))
LYO_REAL1(log10, log10f(a), log10(a))
LYO_REAL1(log1p, log1pf(a), log1p(a))
LYO_REAL1(sin, sinf(a), sin(a))
LYO_REAL1(cos, cosf(a), cos(a))
LYO_REAL1(tan, tanf(a), tan(a))
LYO_REAL1(asin, asinf(a), asin(a))
LYO_REAL1(acos, acosf(a), acos(a))
LYO_REAL1(atan, atanf(a), atan(a))
LYO_REAL1(sinh, sinhf(a), sinh(a))
LYO_REAL1(cosh, coshf(a), cosh(a))
LYO_REAL1(tanh, tanhf(a), tanh(a))
LYO_REAL1(asinh, asinhf(a), asinh(a))
LYO_REAL1(acosh, acoshf(a), acosh(a))
LYO_REAL1(atanh, atanhf(a), atanh(a))
LYO_REAL1(erf, erff(a), erf(a))
LYO_REAL1(erfc, erfcf(a), erfc(a))
LYO_REAL1(sigmoid, 1.0f / (1.0f + expf(-a)), 1.0 / (1.0 + exp(-a)))
LYO_REAL1(ceil, ceilf(a), ceil(a))
LYO_REAL1(round, rintf(a), rint(a))
LYO_REAL1(trunc, truncf(a), trunc(a))

template <class T> __device__ __forceinline__ i32 op_isnan(T a) { return a != a; }
template <class T> __device__ __forceinline__ i32 op_isinf(T a) { return a == a && a - a != a - a; }

template <class T> __device__ __forceinline__ T op_bit_not(T a) { return ~a; }
template <class T> __device__ __forceinline__ T op_bit_and(T a, T b) { return a & b; }
template <class T> __device__ __forceinline__ T op_bit_or(T a, T b) { return a | b; }
template <class T> __device__ __forceinline__ T op_bit_xor(T a, T b) { return a ^ b; }
__device__ __forceinline__ i32 op_shl(i32 a, i32 b) { return b < 0 || b >= 32 ? 0 : (i32)((u32)a << b); }
__device__ __forceinline__ i64 op_shl(i64 a, i64 b) { return b < 0 || b >= 64 ? 0 : (i64)((u64)a << b); }
__device__ __forceinline__ i32 op_shr(i32 a, i32 b) { return b < 0 || b >= 32 ? (a < 0 ? -1 : 0) : a >> b; }
__device__ __forceinline__ i64 op_shr(i64 a, i64 b) { return b < 0 || b >= 64 ? (a < 0 ? -1 : 0) : a >> b; }

template <class T> __device__ __forceinline__ i32 op_eq(T a, T b) { return a == b; }
template <class T> __device__ __forceinline__ i32 op_ne(T a, T b) { return a != b; }
template <class T> __device__ __forceinline__ i32 op_lt(T a, T b) { return a < b; }
template <class T> __device__ __forceinline__ i32 op_le(T a, T b) { return a <= b; }
template <class T> __device__ __forceinline__ i32 op_gt(T a, T b) { return a > b; }
template <class T> __device__ __forceinline__ i32 op_ge(T a, T b) { return a >= b; }

// An index that is not in [0, size) ends the kernel, as PyTorch's device assertion does: what it would read is not
// there.
__device__ __forceinline__ i64 checked_index(i64 index, i64 size) {
    if (index < 0 || index >= size) __trap();
    return index;
}

// `count` neighbours in memory, moved at once.
template <class T, int count> struct alignas(sizeof(T) * count) Pack {
    T at[count];
};
