// Attention of one query for each head over a long cache, in parts: block (part, head) looks at PART keys of 64 halves and gives 64 sums weighted by
// exp2(score - maximum), the maximum and the sum of the weights. Eight lanes hold a key; a warp looks at four keys at a time.
#include <cuda_fp16.h>
constexpr int WIDTH = 64, PART = 256, THREADS = 128, KEYS = THREADS / 8, GIVEN = WIDTH + 2;

__device__ __forceinline__ void floats(float (&to)[8], const __half* from) {
    const uint4 raw = *(const uint4*)from;
    const __half2* pairs = (const __half2*)&raw;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 two = __half22float2(pairs[i]);
        to[2 * i] = two.x, to[2 * i + 1] = two.y;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    flash_decoding(const __half* __restrict__ Q, const __half* __restrict__ K, const __half* __restrict__ V, float* __restrict__ out, int length, float scale) {
    __shared__ float sums[KEYS][WIDTH], most[KEYS], totals[KEYS];
    const int lane = threadIdx.x % 8, mine = threadIdx.x / 8;
    const size_t from = ((size_t)blockIdx.y * length + blockIdx.x * PART + mine) * WIDTH + lane * 8;
    float q[8], o[8] = {}, maximum = -INFINITY, total = 0;
    floats(q, Q + blockIdx.y * WIDTH + lane * 8);
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#else
    constexpr int TIMES = 4;
#endif
#pragma unroll TIMES
    for (int key = 0; key < PART; key += KEYS) {
        float k[8], v[8], score = 0;
        floats(k, K + from + (size_t)key * WIDTH), floats(v, V + from + (size_t)key * WIDTH);
#pragma unroll
        for (int i = 0; i < 8; i++) score += q[i] * k[i];
#pragma unroll
        for (int lanes = 4; lanes; lanes >>= 1) score += __shfl_xor_sync(~0u, score, lanes);
        score *= scale;
        const float larger = fmaxf(maximum, score), shrink = exp2f(maximum - larger), weight = exp2f(score - larger);
        maximum = larger, total = total * shrink + weight;
#pragma unroll
        for (int i = 0; i < 8; i++) o[i] = o[i] * shrink + weight * v[i];
    }
#pragma unroll
    for (int i = 0; i < 8; i++) sums[mine][lane * 8 + i] = o[i];
    if (lane == 0) most[mine] = maximum, totals[mine] = total;
    __syncthreads();
    if (threadIdx.x >= WIDTH) return;
    float all = -INFINITY, sum = 0, weights = 0;
#pragma unroll
    for (int i = 0; i < KEYS; i++) all = fmaxf(all, most[i]);
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const float weight = exp2f(most[i] - all);
        sum += weight * sums[i][threadIdx.x], weights += weight * totals[i];
    }
    float* to = out + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * GIVEN;
    to[threadIdx.x] = sum;
    if (threadIdx.x == 0) to[WIDTH] = all, to[WIDTH + 1] = weights;
}
