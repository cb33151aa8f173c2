// One of each: a guard, a tile with barriers in a loop, a strided loop with a warp reduction.
__global__ void scale(float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;  // the guard becomes the loop's end
}

__global__ void __launch_bounds__(64) smooth(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0.f;
  for (int start = 0; start < n; start += 64) {
    // all threads load one value each
    tile[t] = x[start + t];
    __syncthreads();
    sum += tile[(t + 1) % 64];
    __syncthreads();
  }
  y[t] = sum;
}

__global__ void total(const float* x, float* out, int n) {
  float v = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
