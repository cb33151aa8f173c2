// Safe softmax (the maximum is subtracted) of rows of 4096 floats, one block of 256 threads a row.
constexpr int COLUMNS = 4096, THREADS = 256, VECTORS = COLUMNS / 4 / THREADS, WARPS = THREADS / 32;

extern "C" __global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ X, float* __restrict__ Y) {
    __shared__ float most[WARPS], sums[WARPS];
    const float4* x = (const float4*)(X + (size_t)blockIdx.x * COLUMNS);
    float4 v[VECTORS];
    float maximum = -INFINITY;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        v[i] = x[threadIdx.x + i * THREADS];
        maximum = fmaxf(maximum, fmaxf(fmaxf(v[i].x, v[i].y), fmaxf(v[i].z, v[i].w)));
    }
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int lanes = 16; lanes; lanes >>= 1) maximum = fmaxf(maximum, __shfl_xor_sync(~0u, maximum, lanes));
    if ((threadIdx.x & 31) == 0) most[threadIdx.x >> 5] = maximum;
    __syncthreads();
    maximum = most[0];
#pragma unroll
    for (int i = 1; i < WARPS; i++) maximum = fmaxf(maximum, most[i]);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        v[i].x = __expf(v[i].x - maximum), v[i].y = __expf(v[i].y - maximum), v[i].z = __expf(v[i].z - maximum), v[i].w = __expf(v[i].w - maximum);
        sum += v[i].x + v[i].y + v[i].z + v[i].w;
    }
#ifdef UNROLL
#pragma unroll TIMES
#endif
    for (int lanes = 16; lanes; lanes >>= 1) sum += __shfl_xor_sync(~0u, sum, lanes);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++) sum += sums[i];
    const float scale = __fdividef(1.0f, sum);
    float4* y = (float4*)(Y + (size_t)blockIdx.x * COLUMNS);
#pragma unroll
    for (int i = 0; i < VECTORS; i++) y[threadIdx.x + i * THREADS] = make_float4(v[i].x * scale, v[i].y * scale, v[i].z * scale, v[i].w * scale);
}
