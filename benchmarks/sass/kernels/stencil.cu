// A 25-point stencil of radius 4 in three dimensions: a block marches along z, the column in registers, the plane in shared memory.
constexpr int X = 32, Y = 16, RADIUS = 4;

extern "C" __global__ void __launch_bounds__(X * Y) stencil(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz) {
    __shared__ float plane[Y + 2 * RADIUS][X + 2 * RADIUS];
    const float weight[RADIUS + 1] = {-8.541666f, 1.6f, -0.2f, 0.02539683f, -0.001785714f};
    const int pitch = nx + 2 * RADIUS, tx = threadIdx.x + RADIUS, ty = threadIdx.y + RADIUS;
    const size_t layer = (size_t)pitch * (ny + 2 * RADIUS);
    const size_t here = (size_t)(blockIdx.y * Y + ty) * pitch + blockIdx.x * X + tx;
    float column[2 * RADIUS + 1];
#pragma unroll
    for (int k = 0; k < 2 * RADIUS; k++) column[k] = in[here + k * layer];
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int z = 0; z < nz; z++) {
        column[2 * RADIUS] = in[here + (size_t)(z + 2 * RADIUS) * layer];
        const float* middle = in + (size_t)(z + RADIUS) * layer;
        __syncthreads();
        plane[ty][tx] = column[RADIUS];
        if (threadIdx.y < RADIUS) {
            plane[threadIdx.y][tx] = middle[here - (size_t)RADIUS * pitch];
            plane[ty + Y][tx] = middle[here + (size_t)Y * pitch];
        }
        if (threadIdx.x < RADIUS) {
            plane[ty][threadIdx.x] = middle[here - RADIUS];
            plane[ty][tx + X] = middle[here + X];
        }
        __syncthreads();
        float value = weight[0] * column[RADIUS];
#pragma unroll
        for (int r = 1; r <= RADIUS; r++)
            value += weight[r] * (column[RADIUS - r] + column[RADIUS + r] + plane[ty][tx - r] + plane[ty][tx + r] + plane[ty - r][tx] + plane[ty + r][tx]);
        out[((size_t)z * ny + blockIdx.y * Y + threadIdx.y) * nx + blockIdx.x * X + threadIdx.x] = value;
#pragma unroll
        for (int k = 0; k < 2 * RADIUS; k++) column[k] = column[k + 1];
    }
}
