// The element types of tensors, as plain C++: kernels that cannot import modules (CUDA, the per-instruction-set
// CPU kernels) share this list with lyo.base, which exports it. The numbers are part of the artifact format.
#pragma once

#include <cstdint>

namespace lyo {

// X(name, bytes): the one list of dtypes. Order is the promotion order used by PyTorch within a category.
#define LYO_DTYPES(X) \
    X(boolean, 1)     \
    X(u8, 1)          \
    X(i8, 1)          \
    X(i16, 2)         \
    X(i32, 4)         \
    X(i64, 8)         \
    X(f16, 2)         \
    X(bf16, 2)        \
    X(f32, 4)         \
    X(f64, 8)

/// Element type of a tensor. `boolean` is one byte, 0 or 1.
enum class DType : std::uint8_t {
#define LYO_X(name, bytes) name,
    LYO_DTYPES(LYO_X)
#undef LYO_X
};

}  // namespace lyo
