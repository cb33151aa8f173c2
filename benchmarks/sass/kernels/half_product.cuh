// C = A B of halves with float sums on tensor cores (mma through wmma), copied ahead by cp.async: three stages of 128 x 128 x 32, eight warps.
#pragma once
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

namespace product {
using namespace nvcuda;
constexpr int TILE = 128, DEPTH = 32, STAGES = 3, THREADS = 256, A_PITCH = DEPTH + 8, B_PITCH = TILE + 8;
constexpr int A_STAGE = TILE * A_PITCH, B_STAGE = DEPTH * B_PITCH, SHARED_BYTES = STAGES * (A_STAGE + B_STAGE) * 2;

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>[4][2];

// Copy one tile of A and of B into a stage, 16 bytes a thread at a time.
__device__ __forceinline__ void copy(__half* a, __half* b, const __half* A, const __half* B, int k, int N, int K) {
#pragma unroll
    for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += THREADS) {
        const int row = i / (DEPTH / 8), column = i % (DEPTH / 8) * 8;
        __pipeline_memcpy_async(a + row * A_PITCH + column, A + (size_t)row * K + k + column, 16);
    }
#pragma unroll
    for (int i = threadIdx.x; i < DEPTH * TILE / 8; i += THREADS) {
        const int row = i / (TILE / 8), column = i % (TILE / 8) * 8;
        __pipeline_memcpy_async(b + row * B_PITCH + column, B + (size_t)(k + row) * N + column, 16);
    }
    __pipeline_commit();
}

// Sum up a block's 128 x 128 of the product; warp w makes 64 x 32 at row w / 4, column w % 4. A and B point at the block's first row and column.
__device__ __forceinline__ void multiply(Sums& sums, __half* shared, const __half* A, const __half* B, int N, int K) {
    __half *a_tiles = shared, *b_tiles = shared + STAGES * A_STAGE;
    const int row = threadIdx.x / 128 * 64, column = threadIdx.x / 32 % 4 * 32;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) wmma::fill_fragment(sums[i][j], 0.0f);
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) copy(a_tiles + stage * A_STAGE, b_tiles + stage * B_STAGE, A, B, stage * DEPTH, N, K);
    const int tiles = K / DEPTH;
    int stage = 0, filled = STAGES - 1;
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int tile = 0; tile < tiles; tile++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        if (tile + STAGES - 1 < tiles)
            copy(a_tiles + filled * A_STAGE, b_tiles + filled * B_STAGE, A, B, (tile + STAGES - 1) * DEPTH, N, K);
        else
            __pipeline_commit();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[4];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b[2];
#pragma unroll
            for (int i = 0; i < 4; i++) wmma::load_matrix_sync(a[i], a_tiles + stage * A_STAGE + (row + 16 * i) * A_PITCH + k, A_PITCH);
#pragma unroll
            for (int j = 0; j < 2; j++) wmma::load_matrix_sync(b[j], b_tiles + stage * B_STAGE + k * B_PITCH + column + 16 * j, B_PITCH);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        filled = filled + 1 == STAGES ? 0 : filled + 1;
    }
}

// Store f(sum) as halves; C points at the block's first row and column.
template <typename F> __device__ __forceinline__ void store(Sums& sums, __half* C, int N, F f) {
    const int row = threadIdx.x / 128 * 64, column = threadIdx.x / 32 % 4 * 32;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, __half> out;
#pragma unroll
            for (int e = 0; e < out.num_elements; e++) out.x[e] = __float2half_rn(f(sums[i][j].x[e]));
            wmma::store_matrix_sync(C + (size_t)(row + 16 * i) * N + column + 16 * j, out, N, wmma::mem_row_major);
        }
}
}  // namespace product
