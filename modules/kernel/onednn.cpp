// oneDNN, opened when the first large product needs it: a process that has none, or whose machine lacks the library,
// pays nothing and computes the same with the own kernels.
module;
#include <stdint.h>

#include "cpu/vm.h"

module lyo.kernel;

import lyo.prelude;
import lyo.base;
import lyo.artifact;
import :state;

namespace lyo {
namespace {

// dnnl_sgemm of oneDNN 2 and 3 (dnnl.h): row-major C = alpha * op(A) * op(B) + beta * C; 0 is success.
using Sgemm = int (*)(char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                      int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

Sgemm find_sgemm() noexcept {
    Sgemm found = nullptr;
    SharedLibrary({"libdnnl.so.3", "libdnnl.so.2"}).find(found, "dnnl_sgemm");
    return found;
}

Sgemm sgemm() noexcept {
    static const Sgemm found = find_sgemm();
    return found;
}

/// A factor as BLAS describes it: transposed or not, and its leading dimension; nullopt where neither stride is 1.
struct Factor {
    char transposed;
    int64_t leading;
};
std::optional<Factor> factor(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                             std::int64_t column_stride) {
    if (column_stride == 1 && row_stride >= columns) return Factor{'N', row_stride};
    if (row_stride == 1 && column_stride >= rows) return Factor{'T', column_stride};
    return std::nullopt;
}

}  // namespace

bool CpuProgram::has_onednn() noexcept { return sgemm() != nullptr; }

bool large_gemm(const cpu::GemmCall& call) noexcept {
    // Below this many multiplications the library's own overhead is what it would cost.
    constexpr std::int64_t worthwhile = std::int64_t{1} << 21;
    if (call.a_type != DType::f32 || call.b_type != DType::f32 || call.m < 4 || call.n < 4 || call.k < 4) return false;
    const auto area = checked_mul(call.m, call.n);
    const auto volume = area ? checked_mul(*area, call.k) : std::nullopt;
    if (volume && *volume < worthwhile) return false;
    const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % alignof(float) == 0; };
    if (!aligned(call.a) || !aligned(call.b) || !aligned(call.c)) return false;
    const auto a = factor(call.m, call.k, call.a_m, call.a_k);
    const auto b = factor(call.k, call.n, call.b_k, call.b_n);
    if (!a || !b) return false;
    const Sgemm multiply = sgemm();
    return multiply != nullptr &&
           multiply(a->transposed, b->transposed, call.m, call.n, call.k, 1.0f, reinterpret_cast<const float*>(call.a),
                    a->leading, reinterpret_cast<const float*>(call.b), b->leading, 0.0f, static_cast<float*>(call.c),
                    call.n) == 0;
}

}  // namespace lyo
