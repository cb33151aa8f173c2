// gather_atomics(sum_kernel, each=16, wide=4)
static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }
static inline unsigned ww_fewer(long long threads, unsigned block, unsigned each, unsigned most) {
    long long blocks = (threads + (long long)block * each - 1) / ((long long)block * each);
    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}
static inline long long ww_threads(dim3 grid, dim3 block) { return (long long)grid.x * block.x; }
static __device__ float ww_warp_sum_float(float a) {
    for (int ww_far = 16; ww_far > 0; ww_far /= 2) {
        float b = __shfl_xor_sync(0xffffffffu, a, ww_far);
        a = a + b;
    }
    return a;
}
static __device__ float ww_block_sum_float(float a) {
    __shared__ float ww_parts[32];
    a = ww_warp_sum_float(a);
    __syncthreads();
    if (threadIdx.x % 32 == 0) ww_parts[threadIdx.x / 32] = a;
    __syncthreads();
    a = ww_parts[0];
    for (int ww_warp = 1; ww_warp < (int)blockDim.x / 32; ++ww_warp) {
        float b = ww_parts[ww_warp];
        a = a + b;
    }
    return a;
}
__global__ void sum_kernel(const float* x, float* total, int n, long long ww_threads) {
  float ww_own_0 = 0;
  const long long ww_end = ww_threads < (long long)(n) ? ww_threads : (long long)(n);
  const long long ww_fours = ((size_t)x) % 16 == 0 && ww_end > 0 ? ww_end / 4 : 0;
    #pragma unroll 4
  for (long long ww_four = (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_four < ww_fours; ww_four += (long long)gridDim.x * blockDim.x) {
    const float4 ww_x = ((const float4*)x)[ww_four];
    {
      int i = (int)(4 * ww_four + 0);
      ww_own_0 += (float)(ww_x.x);
    }
    {
      int i = (int)(4 * ww_four + 1);
      ww_own_0 += (float)(ww_x.y);
    }
    {
      int i = (int)(4 * ww_four + 2);
      ww_own_0 += (float)(ww_x.z);
    }
    {
      int i = (int)(4 * ww_four + 3);
      ww_own_0 += (float)(ww_x.w);
    }
  }
  for (long long ww_index = 4 * ww_fours + (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_index < ww_end; ww_index += (long long)gridDim.x * blockDim.x) {
    int i = (int)ww_index;
    ww_own_0 += (float)(x[i]);
  }
  ww_own_0 = ww_block_sum_float(ww_own_0);
  if (threadIdx.x == 0) {
    atomicAdd(total, ww_own_0);
  }
}

extern "C" void sum(const float* x, float* total, int n) {
    cudaMemset(total, 0, sizeof(float));
    sum_kernel<<<dim3(ww_fewer(ww_threads((n + 255) / 256, 256), 256, 16, 2112), ww_copies((n + 255) / 256, 256)), 256>>>(x, total, n, ww_threads((n + 255) / 256, 256));
}
