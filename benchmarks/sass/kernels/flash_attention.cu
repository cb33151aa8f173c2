// Attention of halves without the matrix of scores: a block keeps 64 queries of 64 values each, a warp 16 of them; keys and values pass in tiles of 64.
// The scores of mma.m16n8k16 stand where its A operand wants them, so the weights go from registers into the second product.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <stdint.h>
constexpr int WIDTH = 64, ROWS = 64, KEYS = 64, THREADS = 128, PITCH = WIDTH + 8;

__device__ __forceinline__ void mma(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <bool TRANSPOSED> __device__ __forceinline__ void load(uint32_t (&to)[4], const __half* from) {
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(from);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address));
}

__device__ __forceinline__ void copy(__half (*to)[PITCH], const __half* from) {
#pragma unroll
    for (int i = threadIdx.x; i < KEYS * WIDTH / 8; i += THREADS) __pipeline_memcpy_async(&to[i / 8][i % 8 * 8], from + i * 8, 16);
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *(const uint32_t*)&both;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    flash_attention(const __half* __restrict__ Q, const __half* __restrict__ K, const __half* __restrict__ V, __half* __restrict__ O, int length, float scale) {
    __shared__ __align__(16) __half k_tile[2][KEYS][PITCH], v_tile[2][KEYS][PITCH];
    const size_t head = (size_t)blockIdx.y * length * WIDTH;
    const int lane = threadIdx.x & 31, row = threadIdx.x / 32 * 16;
    Q += head + (size_t)blockIdx.x * ROWS * WIDTH, O += head + (size_t)blockIdx.x * ROWS * WIDTH, K += head, V += head;
    copy(k_tile[1], Q);
    __pipeline_commit();
    copy(k_tile[0], K), copy(v_tile[0], V);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    uint32_t q[WIDTH / 16][4];
#pragma unroll
    for (int d = 0; d < WIDTH / 16; d++) load<false>(q[d], &k_tile[1][row + (lane & 15)][d * 16 + (lane >> 4) * 8]);
    float out[WIDTH / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
    int stage = 0;
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int start = 0; start < length; start += KEYS, stage ^= 1) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (start + KEYS < length) {
            copy(k_tile[stage ^ 1], K + (size_t)(start + KEYS) * WIDTH), copy(v_tile[stage ^ 1], V + (size_t)(start + KEYS) * WIDTH);
            __pipeline_commit();
        }
        float score[KEYS / 8][4] = {};
#pragma unroll
        for (int d = 0; d < WIDTH / 16; d++)
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++) {
                uint32_t k[4];
                load<false>(k, &k_tile[stage][n * 16 + (lane & 7) + (lane >> 4) * 8][d * 16 + (lane >> 3 & 1) * 8]);
                mma(score[2 * n], q[d], k[0], k[1]);
                mma(score[2 * n + 1], q[d], k[2], k[3]);
            }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float maximum = most[half];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) maximum = fmaxf(maximum, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
            maximum = fmaxf(maximum, __shfl_xor_sync(~0u, maximum, 1));
            maximum = fmaxf(maximum, __shfl_xor_sync(~0u, maximum, 2));
            const float shrink = exp2f((most[half] - maximum) * scale);
            most[half] = maximum, total[half] *= shrink;
#pragma unroll
            for (int n = 0; n < WIDTH / 8; n++) out[n][2 * half] *= shrink, out[n][2 * half + 1] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; e++) {
                    score[n][e] = exp2f((score[n][e] - maximum) * scale);
                    total[half] += score[n][e];
                }
        }
#pragma unroll
        for (int n = 0; n < KEYS / 16; n++) {
            const uint32_t weight[4] = {pack(score[2 * n][0], score[2 * n][1]), pack(score[2 * n][2], score[2 * n][3]),
                                        pack(score[2 * n + 1][0], score[2 * n + 1][1]), pack(score[2 * n + 1][2], score[2 * n + 1][3])};
#pragma unroll
            for (int d = 0; d < WIDTH / 16; d++) {
                uint32_t v[4];
                load<true>(v, &v_tile[stage][n * 16 + (lane & 15)][d * 16 + (lane >> 4) * 8]);
                mma(out[2 * d], weight, v[0], v[1]);
                mma(out[2 * d + 1], weight, v[2], v[3]);
            }
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(~0u, total[half], 1);
        total[half] += __shfl_xor_sync(~0u, total[half], 2);
        const float inverse = 1.0f / total[half];
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n++)
            *(uint32_t*)(O + (row + lane / 4 + 8 * half) * WIDTH + n * 8 + lane % 4 * 2) = pack(out[n][2 * half] * inverse, out[n][2 * half + 1] * inverse);
    }
}
