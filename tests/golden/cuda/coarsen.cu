// coarsen(reverse_kernel, each=2)
static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }
static inline unsigned ww_fewer(long long threads, unsigned block, unsigned each, unsigned most) {
    long long blocks = (threads + (long long)block * each - 1) / ((long long)block * each);
    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}
static inline long long ww_threads(dim3 grid, dim3 block) { return (long long)grid.x * block.x; }
__global__ void reverse_kernel(const float* in, float* out, int n, long long ww_threads) {
    #pragma unroll 2
  for (long long ww_index = (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_index < ww_threads; ww_index += (long long)gridDim.x * blockDim.x) {
    int i = (int)ww_index;
    if (i < n) {
      out[n - 1 - i] = in[i];
    }
  }
}

extern "C" void reverse(const float* in, float* out, int n) {
    reverse_kernel<<<dim3(ww_fewer(ww_threads((n + 63) / 64, 64), 256, 2, 2112), ww_copies((n + 63) / 64, 64)), 256>>>(in, out, n, ww_threads((n + 63) / 64, 64));
}
