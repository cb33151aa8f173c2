// Layer norm of rows of 4096 floats, one block of 256 threads a row, the row in registers.
constexpr int COLUMNS = 4096, THREADS = 256, VECTORS = COLUMNS / 4 / THREADS;

extern "C" __global__ void __launch_bounds__(THREADS)
    layernorm(const float* __restrict__ X, const float* __restrict__ G, const float* __restrict__ B, float* __restrict__ Y, float eps) {
    __shared__ float sums[THREADS / 32], squares[THREADS / 32];
    const float4* x = (const float4*)(X + (size_t)blockIdx.x * COLUMNS);
    float4 v[VECTORS];
    float sum = 0, square = 0;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        v[i] = x[threadIdx.x + i * THREADS];
        sum += v[i].x + v[i].y + v[i].z + v[i].w;
        square += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
    }
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int lanes = 16; lanes; lanes >>= 1) {
        sum += __shfl_xor_sync(~0u, sum, lanes);
        square += __shfl_xor_sync(~0u, square, lanes);
    }
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = sum, squares[threadIdx.x >> 5] = square;
    __syncthreads();
    sum = square = 0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++) sum += sums[i], square += squares[i];
    const float mean = sum / COLUMNS, scale = rsqrtf(square / COLUMNS - mean * mean + eps);
    float4* y = (float4*)(Y + (size_t)blockIdx.x * COLUMNS);
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        const float4 g = ((const float4*)G)[threadIdx.x + i * THREADS], b = ((const float4*)B)[threadIdx.x + i * THREADS];
        y[threadIdx.x + i * THREADS] = make_float4((v[i].x - mean) * scale * g.x + b.x, (v[i].y - mean) * scale * g.y + b.y,
                                                   (v[i].z - mean) * scale * g.z + b.z, (v[i].w - mean) * scale * g.w + b.w);
    }
}
