// join_sums(integrate_kernel, wide=4)
static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }
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
__global__ void integrate_kernel(const float* samples, float* integral, float a, float b, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  const long long ww_end = (long long)(n);
  const long long ww_fours = ((size_t)samples) % 16 == 0 && ww_end > 0 ? ww_end / 4 : 0;
    #pragma unroll 4
  for (long long ww_four = (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_four < ww_fours; ww_four += (long long)gridDim.x * blockDim.x) {
    const float4 ww_samples = ((const float4*)samples)[ww_four];
    {
      int i = (int)(4 * ww_four + 0);
      sum += ww_samples.x;
    }
    {
      int i = (int)(4 * ww_four + 1);
      sum += ww_samples.y;
    }
    {
      int i = (int)(4 * ww_four + 2);
      sum += ww_samples.z;
    }
    {
      int i = (int)(4 * ww_four + 3);
      sum += ww_samples.w;
    }
  }
  for (long long ww_index = 4 * ww_fours + (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_index < ww_end; ww_index += (long long)gridDim.x * blockDim.x) {
    int i = (int)ww_index;
    sum += samples[i];
  }
  sum = ww_block_sum_float(sum);
  if (threadIdx.x == 0) {
    atomicAdd(integral, sum * (b - a) / n);
  }
}

extern "C" void monte_carlo(const float* samples, float* integral, float a, float b, int n) {
    cudaMemset(integral, 0, sizeof(float));
    integrate_kernel<<<dim3(1056, ww_copies(64, 256)), 256>>>(samples, integral, a, b, n);
}
