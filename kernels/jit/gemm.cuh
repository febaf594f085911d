// Matrix products of generated kernels, any strides: a tile of the result per block, sums in registers. The generated
// code gives functions that read elements of the factors and take each sum.

// Sums of a 64 x 64 tile: 256 threads, 4 x 4 sums each, `depth` of the factors at a time in shared memory.
// read_a(m, k) and read_b(k, n) are called within the matrix only; take(m, n, sum) for each element of the tile.
template <class S, class ReadA, class ReadB, class Take>
__device__ __forceinline__ void gemm_tile(i64 m, i64 n, i64 k, i64 tile, ReadA read_a, ReadB read_b, Take take) {
    constexpr int size = 64, depth = 16;
    __shared__ S as[depth][size + 4], bs[depth][size + 4];
    const i64 columns = (n + size - 1) / size;
    const i64 m0 = tile / columns * size, n0 = tile % columns * size;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    S sums[4][4] = {};
    for (i64 k0 = 0; k0 < k; k0 += depth) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < size * depth / 256; ++i) {
            const int at = i * 256 + threadIdx.x;
            const int ak = at % depth, am = at / depth, bn = at % size, bk = at / size;
            as[ak][am] = m0 + am < m && k0 + ak < k ? read_a(m0 + am, k0 + ak) : (S)0;
            bs[bk][bn] = n0 + bn < n && k0 + bk < k ? read_b(k0 + bk, n0 + bn) : (S)0;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < depth; ++d) {
            S a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) a[i] = as[d][ty * 4 + i], b[i] = bs[d][tx * 4 + i];
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (m0 + ty * 4 + i < m && n0 + tx * 4 + j < n) take(m0 + ty * 4 + i, n0 + tx * 4 + j, sums[i][j]);
}
