// Strided tensors into row-major memory. Writes are consecutive over a warp; reads are as the strides have it.
#include <cuda_runtime_api.h>
#include <lyo_kernels.h>

#include <cstdint>

namespace {

struct Layout {
    int rank;
    std::int64_t sizes[LYO_KERNELS_MAX_RANK], strides[LYO_KERNELS_MAX_RANK];
};

constexpr int threads = 256;
// Enough blocks to fill any device; a thread goes on to its next element beyond that.
constexpr std::int64_t most_blocks = 8192;

// Index: what element numbers are divided in. 32-bit division is several times as fast; offsets are 64-bit in any case.
template <class Element, class Index>
__global__ void pack(Element* __restrict__ to, const Element* __restrict__ from, Layout layout, std::int64_t count) {
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += step) {
        auto rest = static_cast<Index>(i);
        std::int64_t offset = 0;
        for (int d = layout.rank - 1; d > 0; --d) {
            const auto size = static_cast<Index>(layout.sizes[d]);
            const Index next = rest / size;
            offset += static_cast<std::int64_t>(rest - next * size) * layout.strides[d];
            rest = next;
        }
        to[i] = from[offset + static_cast<std::int64_t>(rest) * layout.strides[0]];
    }
}

// Leaves out dimensions of size 1 and joins those that one step walks through, so that most layouts get a rank of 1
// to 3.
Layout joined(int rank, const std::int64_t* sizes, const std::int64_t* strides) {
    Layout out{};
    for (int d = 0; d < rank; ++d) {
        if (sizes[d] == 1) continue;
        const int last = out.rank - 1;
        if (out.rank > 0 && out.strides[last] == sizes[d] * strides[d]) {
            out.sizes[last] *= sizes[d];
            out.strides[last] = strides[d];
            continue;
        }
        out.sizes[out.rank] = sizes[d];
        out.strides[out.rank] = strides[d];
        ++out.rank;
    }
    return out;
}

template <class Element>
cudaError_t launch(void* to, const void* from, const Layout& layout, std::int64_t count, cudaStream_t stream) {
    const std::int64_t wanted = (count + threads - 1) / threads;
    const auto blocks = static_cast<unsigned>(wanted < most_blocks ? wanted : most_blocks);
    const auto kernel = count <= UINT32_MAX ? pack<Element, std::uint32_t> : pack<Element, std::uint64_t>;
    kernel<<<blocks, threads, 0, stream>>>(static_cast<Element*>(to), static_cast<const Element*>(from), layout, count);
    return cudaGetLastError();
}

}  // namespace

extern "C" int lyo_kernels_pack(void* to, const void* from, int element_size, int rank, const std::int64_t* sizes,
                                const std::int64_t* strides, void* stream) {
    if (rank < 0 || rank > LYO_KERNELS_MAX_RANK || (rank > 0 && (!sizes || !strides))) return cudaErrorInvalidValue;
    if (element_size != 1 && element_size != 2 && element_size != 4 && element_size != 8) return cudaErrorInvalidValue;
    std::int64_t bytes = element_size;
    bool empty = false;
    for (int d = 0; d < rank; ++d) {
        if (sizes[d] < 0) return cudaErrorInvalidValue;
        if (sizes[d] == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(bytes, sizes[d], &bytes)) {
            return cudaErrorInvalidValue;
        }
    }
    if (empty) return cudaSuccess;
    if (!to || !from) return cudaErrorInvalidValue;

    const auto on = static_cast<cudaStream_t>(stream);
    const Layout layout = joined(rank, sizes, strides);
    if (layout.rank == 0 || (layout.rank == 1 && layout.strides[0] == 1))
        return cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, on);
    const std::int64_t count = bytes / element_size;
    switch (element_size) {
        case 1:
            return launch<std::uint8_t>(to, from, layout, count, on);
        case 2:
            return launch<std::uint16_t>(to, from, layout, count, on);
        case 4:
            return launch<std::uint32_t>(to, from, layout, count, on);
        default:
            return launch<std::uint64_t>(to, from, layout, count, on);
    }
}
