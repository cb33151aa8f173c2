// Accelerations of n bodies (x, y, z, mass), all pairs, tiles of 256 bodies in shared memory.
constexpr int TILE = 256;

extern "C" __global__ void __launch_bounds__(TILE) nbody(const float4* __restrict__ bodies, float4* __restrict__ out, int n) {
    __shared__ float4 tile[TILE];
    const int i = blockIdx.x * TILE + threadIdx.x;
    const float4 me = bodies[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += TILE) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
#ifdef UNROLL
        constexpr int TIMES = UNROLL;
#else
        constexpr int TIMES = 16;
#endif
#pragma unroll TIMES
        for (int j = 0; j < TILE; j++) {
            const float4 other = tile[j];
            const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-2f);
            const float pull = other.w * inverse * inverse * inverse;
            ax += dx * pull, ay += dy * pull, az += dz * pull;
        }
        __syncthreads();
    }
    out[i] = make_float4(ax, ay, az, 0.0f);
}
