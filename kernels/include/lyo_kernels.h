/* Device code behind C entries: nvcc cannot compile modules, so this header is all that C++ sees of kernels/.
 *
 * Every entry enqueues work on `stream` (a cudaStream_t) and returns without waiting; it returns a cudaError_t as int,
 * 0 for success. Bad arguments are cudaErrorInvalidValue (1), found before the device is touched. Errors of the work
 * itself show up where the stream is next waited for. Pointers are device pointers. */
#ifndef LYO_KERNELS_H
#define LYO_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LYO_KERNELS_MAX_RANK 8

/* Gathers a strided tensor into row-major memory: `to[i]` = the i-th element of `from` in row-major order of `sizes`.
 *   element_size  1, 2, 4 or 8 bytes; both pointers aligned to it
 *   sizes, strides  `rank` of each, in host memory, read before the call returns; strides count elements and may be
 * zero or negative; `from` points to the element whose indices are all zero The two regions do not overlap. Offsets are
 * 64-bit. A tensor without elements is no work. */
int lyo_kernels_pack(void* to, const void* from, int element_size, int rank, const int64_t* sizes,
                     const int64_t* strides, void* stream);

#ifdef __cplusplus
}
#endif

#endif
