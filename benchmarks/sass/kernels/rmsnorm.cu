// Root-mean-square norm of rows of 4096 halves, one block of 256 threads a row.
#include <cuda_fp16.h>
constexpr int COLUMNS = 4096, THREADS = 256, VECTORS = COLUMNS / 8 / THREADS;

extern "C" __global__ void __launch_bounds__(THREADS) rmsnorm(const __half* __restrict__ X, const __half* __restrict__ W, __half* __restrict__ Y, float eps) {
    __shared__ float squares[THREADS / 32];
    const uint4* x = (const uint4*)(X + (size_t)blockIdx.x * COLUMNS);
    float v[VECTORS][8], square = 0;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        const uint4 raw = x[threadIdx.x + i * THREADS];
        const __half2* pair = (const __half2*)&raw;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 two = __half22float2(pair[j]);
            v[i][2 * j] = two.x, v[i][2 * j + 1] = two.y;
            square += two.x * two.x + two.y * two.y;
        }
    }
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int lanes = 16; lanes; lanes >>= 1) square += __shfl_xor_sync(~0u, square, lanes);
    if ((threadIdx.x & 31) == 0) squares[threadIdx.x >> 5] = square;
    __syncthreads();
    square = 0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) square += squares[i];
    const float scale = rsqrtf(square / COLUMNS + eps);
    uint4* y = (uint4*)(Y + (size_t)blockIdx.x * COLUMNS);
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        const uint4 raw = ((const uint4*)W)[threadIdx.x + i * THREADS];
        const __half2* weight = (const __half2*)&raw;
        uint4 packed;
        __half2* out = (__half2*)&packed;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 w = __half22float2(weight[j]);
            out[j] = __floats2half2_rn(v[i][2 * j] * scale * w.x, v[i][2 * j + 1] * scale * w.y);
        }
        y[threadIdx.x + i * THREADS] = packed;
    }
}
