// Reductions over the threads that share a row. Rows are shared by `width` threads, a power of two: a part of a warp,
// or the whole block. Every thread gets the result.
struct Sum {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return op_add(a, b); }
};
struct Prod {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return op_mul(a, b); }
};
struct Max {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return op_maximum(a, b); }
};
struct Min {
    template <class T> static __device__ __forceinline__ T join(T a, T b) { return op_minimum(a, b); }
};

// A candidate of argmax or argmin: the first of the extreme values, and the first NaN before any of them.
template <class T> struct Candidate {
    T value;
    i64 index;  // -1: none yet
};
template <bool greatest> struct Arg {
    template <class T> static __device__ __forceinline__ Candidate<T> join(Candidate<T> a, Candidate<T> b) {
        if (b.index < 0) return a;
        if (a.index < 0) return b;
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan ? a : b;
        const bool same = a_nan || a.value == b.value;
        const bool a_first = same ? a.index < b.index : greatest ? a.value > b.value : a.value < b.value;
        return a_first ? a : b;
    }
};
typedef Arg<true> ArgMax;
typedef Arg<false> ArgMin;

template <class T> __device__ __forceinline__ T shuffled(T x, int mask, int width) {
    return __shfl_xor_sync(0xffffffffu, x, mask, width);
}
template <class T> __device__ __forceinline__ Candidate<T> shuffled(Candidate<T> x, int mask, int width) {
    return {shuffled(x.value, mask, width), shuffled(x.index, mask, width)};
}

// Rows side by side in a warp, or one row a block. `scratch` has a place for each warp of the block.
template <class Op, int width, class T> __device__ __forceinline__ T across_row(T x, T* scratch) {
#pragma unroll
    for (int mask = (width < 32 ? width : 32) / 2; mask > 0; mask /= 2) x = Op::join(x, shuffled(x, mask, 32));
    if constexpr (width > 32) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        __syncthreads();  // whoever read the scratch before is done
        if (lane == 0) scratch[warp] = x;
        __syncthreads();
        x = scratch[lane % (width / 32)];
#pragma unroll
        for (int mask = width / 64; mask > 0; mask /= 2) x = Op::join(x, shuffled(x, mask, 32));
    }
    return x;
}

// 32 rows side by side, so that neighbouring threads read neighbouring memory; `height` threads share each.
// `scratch` has a place for each thread of the block.
template <class Op, int height, class T> __device__ __forceinline__ T down_columns(T x, T* scratch) {
    if constexpr (height > 1) {
        const int row = threadIdx.x % 32;
        __syncthreads();
        scratch[threadIdx.x] = x;
        __syncthreads();
        x = scratch[row];
#pragma unroll
        for (int i = 1; i < height; ++i) x = Op::join(x, scratch[row + 32 * i]);
    }
    return x;
}
