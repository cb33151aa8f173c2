// vectorise(saxpy_kernel, each=4)
static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }
static inline unsigned ww_fewer(long long threads, unsigned block, unsigned each, unsigned most) {
    long long blocks = (threads + (long long)block * each - 1) / ((long long)block * each);
    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}
static inline long long ww_threads(dim3 grid, dim3 block) { return (long long)grid.x * block.x; }
__global__ void saxpy_kernel(int n, float a, const float* x, const float* y, float* out, long long ww_threads) {
  const long long ww_end = ww_threads < (long long)(n) ? ww_threads : (long long)(n);
  const long long ww_fours = ((size_t)x | (size_t)y | (size_t)out) % 16 == 0 && ww_end > 0 ? ww_end / 4 : 0;
  for (long long ww_four = (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_four < ww_fours; ww_four += (long long)gridDim.x * blockDim.x) {
    const float4 ww_x = ((const float4*)x)[ww_four];
    const float4 ww_y = ((const float4*)y)[ww_four];
    float4 ww_out;
    {
      int i = (int)(4 * ww_four + 0);
      ww_out.x = a * ww_x.x + ww_y.x;
    }
    {
      int i = (int)(4 * ww_four + 1);
      ww_out.y = a * ww_x.y + ww_y.y;
    }
    {
      int i = (int)(4 * ww_four + 2);
      ww_out.z = a * ww_x.z + ww_y.z;
    }
    {
      int i = (int)(4 * ww_four + 3);
      ww_out.w = a * ww_x.w + ww_y.w;
    }
    ((float4*)out)[ww_four] = ww_out;
  }
  for (long long ww_index = 4 * ww_fours + (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_index < ww_end; ww_index += (long long)gridDim.x * blockDim.x) {
    int i = (int)ww_index;
    out[i] = a * x[i] + y[i];
  }
}

extern "C" void saxpy(int n, float a, const float* x, const float* y, float* out) {
    saxpy_kernel<<<dim3(ww_fewer(ww_threads((n + 255) / 256, 256), 256, 4, 2147483647), ww_copies((n + 255) / 256, 256)), 256>>>(n, a, x, y, out, ww_threads((n + 255) / 256, 256));
}
