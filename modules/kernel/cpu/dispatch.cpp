#include "vm.h"

namespace lyo::cpu {

// The builtin also asks whether the operating system saves the wide registers.
const Kernels& best_kernels() noexcept {
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
    return avx512 ? kernels_avx512 : avx2 ? kernels_avx2 : kernels_baseline;
}

}  // namespace lyo::cpu
