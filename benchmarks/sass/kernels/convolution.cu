// A convolution of 3 x 3 in float32, channels first, without padding: a block makes 32 x 16 pixels of eight channels, a thread two pixels of each.
constexpr int WIDTH = 32, HEIGHT = 16, MADE = 8, SIDE = 3, THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS)
    convolution(const float* __restrict__ X, const float* __restrict__ W, float* __restrict__ Y, int channels, int height, int width) {
    __shared__ float tile[HEIGHT + 2][WIDTH + 2], weight[SIDE * SIDE][MADE];
    const int x = threadIdx.x % WIDTH, y = threadIdx.x / WIDTH, left = blockIdx.x * WIDTH, top = blockIdx.y * HEIGHT, first = blockIdx.z * MADE;
    float sum[2][MADE] = {};
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int c = 0; c < channels; c++) {
        const float* from = X + ((size_t)c * (height + 2) + top) * (width + 2) + left;
        __syncthreads();
#pragma unroll
        for (int i = threadIdx.x; i < (HEIGHT + 2) * (WIDTH + 2); i += THREADS)
            tile[i / (WIDTH + 2)][i % (WIDTH + 2)] = from[(size_t)(i / (WIDTH + 2)) * (width + 2) + i % (WIDTH + 2)];
        if (threadIdx.x < MADE * SIDE * SIDE)
            weight[threadIdx.x % (SIDE * SIDE)][threadIdx.x / (SIDE * SIDE)] =
                W[((size_t)(first + threadIdx.x / (SIDE * SIDE)) * channels + c) * SIDE * SIDE + threadIdx.x % (SIDE * SIDE)];
        __syncthreads();
#pragma unroll
        for (int dy = 0; dy < SIDE; dy++)
#pragma unroll
            for (int dx = 0; dx < SIDE; dx++) {
                const float upper = tile[y + dy][x + dx], lower = tile[y + HEIGHT / 2 + dy][x + dx];
#pragma unroll
                for (int k = 0; k < MADE; k++) {
                    sum[0][k] += weight[dy * SIDE + dx][k] * upper;
                    sum[1][k] += weight[dy * SIDE + dx][k] * lower;
                }
            }
    }
#pragma unroll
    for (int k = 0; k < MADE; k++)
#pragma unroll
        for (int p = 0; p < 2; p++) Y[((size_t)(first + k) * height + top + y + p * HEIGHT / 2) * width + left + x] = sum[p][k];
}
