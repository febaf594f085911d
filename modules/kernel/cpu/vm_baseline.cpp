// The kernels for any x86-64 processor (SSE2).
#include "vm.h"

namespace lyo::cpu {
namespace {
constexpr int W = 8;                   // lanes of a vector in loop programs
constexpr int gemm_vector_bytes = 16;  // a processor register
constexpr int gemm_rows = 4;           // rows of a register tile; it is two vectors wide
#include "kernels.inc"
}  // namespace

const Kernels kernels_baseline{"x86-64", run, gemm};

}  // namespace lyo::cpu
