// The kernels for processors with AVX-512 F, BW, DQ, VL and CD.
#include "vm.h"

namespace lyo::cpu {
namespace {
constexpr int W = 16;                  // lanes of a vector in loop programs
constexpr int gemm_vector_bytes = 64;  // a processor register
constexpr int gemm_rows = 12;          // rows of a register tile; it is two vectors wide
#include "kernels.inc"
}  // namespace

const Kernels kernels_avx512{"avx512", run, gemm};

}  // namespace lyo::cpu
