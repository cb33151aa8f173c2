// privatise(histogram_kernel, each=16, wide=4)
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
  const long long ww_end = ww_threads < (long long)(n) ? ww_threads : (long long)(n);
  const long long ww_fours = ((size_t)values) % 16 == 0 && ww_end > 0 ? ww_end / 4 : 0;
  int4 ww_next_values;
  if ((long long)blockIdx.x * blockDim.x + threadIdx.x < ww_fours) ww_next_values = ((const int4*)values)[(long long)blockIdx.x * blockDim.x + threadIdx.x];
    #pragma unroll 2
  for (long long ww_four = (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_four < ww_fours; ww_four += (long long)gridDim.x * blockDim.x) {
    const int4 ww_values = ww_next_values;
    if (ww_four + (long long)gridDim.x * blockDim.x < ww_fours) ww_next_values = ((const int4*)values)[ww_four + (long long)gridDim.x * blockDim.x];
    {
      int i = (int)(4 * ww_four + 0);
      int bin = ww_values.x;
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
    {
      int i = (int)(4 * ww_four + 1);
      int bin = ww_values.y;
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
    {
      int i = (int)(4 * ww_four + 2);
      int bin = ww_values.z;
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
    {
      int i = (int)(4 * ww_four + 3);
      int bin = ww_values.w;
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
  for (long long ww_index = 4 * ww_fours + (long long)blockIdx.x * blockDim.x + threadIdx.x; ww_index < ww_end; ww_index += (long long)gridDim.x * blockDim.x) {
    int i = (int)ww_index;
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
  __syncthreads();
  for (int ww_bin = threadIdx.x; ww_bin < ww_bins; ww_bin += blockDim.x) { int ww_count = ww_own[ww_bin]; if (ww_count != 0) atomicAdd(&bins[ww_bin], ww_count); }
}


extern "C" void histogram(const int* values, int* bins, int n, int count) {
    cudaMemset(bins, 0, count * sizeof(int));
    if ((size_t)(count * sizeof(int)) <= 49152) { histogram_kernel_private<<<dim3(ww_fewer(ww_threads((n + 255) / 256, 256), 256, 16, 2112), ww_copies((n + 255) / 256, 256)), 256, (size_t)(count * sizeof(int))>>>(values, bins, n, count, ww_threads((n + 255) / 256, 256), (int)((count * sizeof(int)) / sizeof(int))); } else histogram_kernel<<<(n + 255) / 256, 256>>>(values, bins, n, count);
}
