// The CPU kernels' interface, as plain C++: the implementation (vm_impl.inc, gemm_impl.inc) is compiled once per
// instruction set with different -m flags, so it must share no inline function with the rest of the program: an
// AVX-512 copy of an inline function that the linker picks for everybody would crash older processors. Only plain
// data crosses here; everything behind it has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lyo/dtype.h"
#include "lyo/scalar_op.h"

namespace lyo::cpu {

inline constexpr int max_rank = 8;
/// Lanes of a register: a loop program works on blocks of this many elements.
inline constexpr int lanes = 512;
/// Bytes of one register in `LoopCall::registers` (64-byte aligned).
inline constexpr std::size_t register_bytes = std::size_t{lanes} * 8;
/// `LoopCall::registers` holds this many more registers than the program names: accumulators and offsets.
inline constexpr int scratch_registers = 4;

/// One instruction. Registers are numbers below 256. Which fields count:
///   load        dst = operand[b] at this element, converted from its dtype to its class (cls)
///   store       operand[b] = a (class cls), converted to the operand's dtype
///   iota        dst (cls) = operand[b].start + sum of coordinate * stride, as an integer, converted to cls
///   constant    dst (cls) = constants[b]: the bit pattern of a double (f32, f64) or an int64 (i32, i64)
///   symbol      dst (i64) = symbols[b]
///   load_at     dst = operand[b] at (its own affine offset + register a (i64)), in elements; an offset outside
///               [operand.lo, operand.hi) stops the call with Status::index_out_of_range
///   check_index dst (i64) = a (i64) if 0 <= a < symbols[b], else Status::index_out_of_range with that value
///   cast        dst (cls) = a (class from) converted to dtype `to`: rounds to f16/bf16, wraps to the integer's
///               width, boolean is a != 0; float to integer truncates, out of int64's range and NaN give INT64_MIN
///               (then wrap)
///   select      dst = a (i32) != 0 ? b : c, all lanes; b, c, dst of class cls
///   reduce_*    accumulates a (cls) over the reduced dims; dst has the result once the phase is over, in all lanes.
///               reduce_argmax/argmin: dst is i64, the linear index in the reduced dims of the first maximum
///               (the first NaN if there is one). reduce_max/min propagate NaN. Empty: sum 0, prod 1, max/min
///               -inf/+inf (integers: the class's lowest/highest), arg 0.
///   all others  dst = op(a, b) in class cls; compare and test give i32
struct Instr {
    ScalarOp op;
    RegClass cls;
    RegClass from;
    DType to;
    std::uint16_t dst, a, b, c;
};

/// Instructions [first, first + count). A full phase runs for every element of outer x reduced space; an outer phase
/// (after reductions) once per outer element: its values are the same along the reduced dims.
struct Phase {
    std::uint32_t first, count;
    bool outer;
};

/// A view over the iteration space: where the element at coordinate 0 is, and strides in elements (any sign, or 0).
struct Operand {
    std::byte* base;
    std::int64_t start;
    std::int64_t lo, hi;
    std::int64_t outer[max_rank];
    std::int64_t reduced[max_rank];
    DType dtype;
};

enum class Status : int { ok, index_out_of_range };

/// One execution of a loop program. Outer elements are numbered row-major; every output operand of an outer phase
/// ignores reduced strides. `fault` receives the offending index when the status is not ok.
struct LoopCall {
    int outer_rank, reduced_rank;
    std::int64_t outer_extent[max_rank];
    std::int64_t reduced_extent[max_rank];
    const Instr* instrs;
    const Phase* phases;
    std::uint32_t phase_count;
    const std::uint64_t* constants;
    const std::int64_t* symbols;
    const Operand* operands;
    std::byte* registers;
    std::int64_t fault;
};

/// C[m,n] = sum over k of A[m,k] * B[k,n]; strides in elements, any; C is row-major contiguous of the accumulator
/// class of the dtype (f16/bf16/f32 -> float, f64 -> double, integers -> int64, wrapping). k == 0 gives zeros.
/// `scratch` has gemm_scratch_bytes bytes, 64-byte aligned.
struct GemmCall {
    DType a_type, b_type;
    const std::byte* a;
    const std::byte* b;
    std::int64_t m, n, k;
    std::int64_t a_m, a_k, b_k, b_n;
    void* c;
    std::byte* scratch;
};
inline constexpr std::size_t gemm_scratch_bytes = std::size_t{1} << 20;

struct Kernels {
    const char* name;  ///< "x86-64", "avx2", "avx512"
    /// Runs outer elements [begin, end). Thread-safe for disjoint ranges with their own registers and LoopCall.
    Status (*run)(LoopCall& call, std::int64_t begin, std::int64_t end);
    void (*gemm)(const GemmCall& call);
};

extern const Kernels kernels_baseline;
extern const Kernels kernels_avx2;    ///< needs avx2, fma, f16c
extern const Kernels kernels_avx512;  ///< needs avx512f, bw, dq, vl and the above

/// The best set for the processor this runs on.
const Kernels& best_kernels() noexcept;

}  // namespace lyo::cpu
