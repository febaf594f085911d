// The kernels for processors with AVX2, FMA and F16C.
#include "vm.h"

namespace lyo::cpu {
namespace {
constexpr int W = 16;                  // lanes of a vector in loop programs
constexpr int gemm_vector_bytes = 32;  // a processor register
constexpr int gemm_rows = 6;           // rows of a register tile; it is two vectors wide
#include "kernels.inc"
}  // namespace

const Kernels kernels_avx2{"avx2", run, gemm};

}  // namespace lyo::cpu
