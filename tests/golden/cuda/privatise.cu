// privatise(histogram_kernel, each=16)
static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }
static inline unsigned ww_fewer(long long threads, unsigned block, unsigned each, unsigned most) {
    long long blocks = (threads + (long long)block * each - 1) / ((long long)block * each);
    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}
static inline long long ww_threads(dim3 grid, dim3 block) { return (long long)grid.x * block.x; }
__global__ void histogram_kernel(const int* values, int* bins, int n, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int bin = values[i];
        if (bin >= 0 && bin < count) {
            atomicAdd(&bins[bin], 1);
        }
    }
}

__global__ void histogram_kernel_private(const int* values, int* bins, int n, int count, long long ww_threads, int ww_bins) {
  extern __shared__ int ww_own[];
  for (int ww_bin = threadIdx.x; ww_bin < ww_bins; ww_bin += blockDim.x) ww_own[ww_bin] = 0;
  __syncthreads();
    #pragma unroll 4
  for (long long ww_index = (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_index < ww_threads; ww_index += (long long)gridDim.x * blockDim.x) {
    int i = (int)ww_index;
    if (i < n) {
      int bin = values[i];
      if (bin >= 0 && bin < count) {
        {
          const long long ww_bin = bin;
          if ((unsigned long long)ww_bin < (unsigned long long)ww_bins) {
            atomicAdd(&ww_own[ww_bin], (int)(1));
          } else {
            atomicAdd(bins + ww_bin, (int)(1));
          }
        }
      }
    }
  }
  __syncthreads();
  for (int ww_bin = threadIdx.x; ww_bin < ww_bins; ww_bin += blockDim.x) { int ww_count = ww_own[ww_bin]; if (ww_count != 0) atomicAdd(&bins[ww_bin], ww_count); }
}


extern "C" void histogram(const int* values, int* bins, int n, int count) {
    cudaMemset(bins, 0, count * sizeof(int));
    if ((size_t)(count * sizeof(int)) <= 49152) { histogram_kernel_private<<<dim3(ww_fewer(ww_threads((n + 255) / 256, 256), 256, 16, 2112), ww_copies((n + 255) / 256, 256)), 256, (size_t)(count * sizeof(int))>>>(values, bins, n, count, ww_threads((n + 255) / 256, 256), (int)((count * sizeof(int)) / sizeof(int))); } else histogram_kernel<<<(n + 255) / 256, 256>>>(values, bins, n, count);
}
