// The gated half of a feed-forward layer in one kernel: C = silu(A G) * (A U) of halves, row major, tiles of 64 x 64 x 32, two stages, four warps.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;
constexpr int TILE = 64, DEPTH = 32, THREADS = 128, A_PITCH = DEPTH + 8, B_PITCH = TILE + 8;

__device__ __forceinline__ void copy(__half (*to)[A_PITCH], const __half* A, int K) {
#pragma unroll
    for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += THREADS)
        __pipeline_memcpy_async(&to[i / 4][i % 4 * 8], A + (size_t)(i / 4) * K + i % 4 * 8, 16);
}

__device__ __forceinline__ void copy(__half (*to)[B_PITCH], const __half* B, int N) {
#pragma unroll
    for (int i = threadIdx.x; i < DEPTH * TILE / 8; i += THREADS)
        __pipeline_memcpy_async(&to[i / 8][i % 8 * 8], B + (size_t)(i / 8) * N + i % 8 * 8, 16);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    feed_forward(const __half* __restrict__ A, const __half* __restrict__ G, const __half* __restrict__ U, __half* __restrict__ C, int N, int K) {
    __shared__ __align__(16) __half a_tile[2][TILE][A_PITCH], g_tile[2][DEPTH][B_PITCH], u_tile[2][DEPTH][B_PITCH];
    A += (size_t)blockIdx.y * TILE * K, G += blockIdx.x * TILE, U += blockIdx.x * TILE;
    const int row = threadIdx.x / 64 * 32, column = threadIdx.x / 32 % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> gate[2][2], up[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) wmma::fill_fragment(gate[i / 2][i % 2], 0.0f), wmma::fill_fragment(up[i / 2][i % 2], 0.0f);
    copy(a_tile[0], A, K), copy(g_tile[0], G, N), copy(u_tile[0], U, N);
    __pipeline_commit();
    int stage = 0;
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int k = 0; k < K; k += DEPTH, stage ^= 1) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (k + DEPTH < K) {
            const size_t next = (size_t)(k + DEPTH) * N;
            copy(a_tile[stage ^ 1], A + k + DEPTH, K), copy(g_tile[stage ^ 1], G + next, N), copy(u_tile[stage ^ 1], U + next, N);
            __pipeline_commit();
        }
#pragma unroll
        for (int d = 0; d < DEPTH; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> g[2], u[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(a[i], &a_tile[stage][row + 16 * i][d], A_PITCH);
                wmma::load_matrix_sync(g[i], &g_tile[stage][d][column + 16 * i], B_PITCH);
                wmma::load_matrix_sync(u[i], &u_tile[stage][d][column + 16 * i], B_PITCH);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                wmma::mma_sync(gate[i / 2][i % 2], a[i / 2], g[i % 2], gate[i / 2][i % 2]);
                wmma::mma_sync(up[i / 2][i % 2], a[i / 2], u[i % 2], up[i / 2][i % 2]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        wmma::fragment<wmma::accumulator, 16, 16, 16, __half> out;
#pragma unroll
        for (int e = 0; e < out.num_elements; e++) {
            const float g = gate[i / 2][i % 2].x[e];
            out.x[e] = __float2half_rn(g * __fdividef(1.0f, 1.0f + __expf(-g)) * up[i / 2][i % 2].x[e]);
        }
        __half* to = C + (size_t)(blockIdx.y * TILE + row + i / 2 * 16) * N + blockIdx.x * TILE + column + i % 2 * 16;
        wmma::store_matrix_sync(to, out, N, wmma::mem_row_major);
    }
}
