extern "C" __global__ void __launch_bounds__(64) softmax_kernel(const float* __restrict__ x0, float* __restrict__ y) {
  __shared__ float shared_m[2];
  __shared__ float shared_s[2];
  int i = (int)blockIdx.x;
  float m = -3.402823466e+38f;
  for (int k = threadIdx.x; k < 40; k += 64) {
    m = fmaxf(m, x0[i * 40 + k]);
  }
  for (int d = 16; d > 0; d >>= 1) m = fmaxf(m, __shfl_down_sync(0xffffffff, m, d));
  if ((threadIdx.x & 31) == 0) shared_m[threadIdx.x >> 5] = m;
  __syncthreads();
  if (threadIdx.x < 32) {
    m = threadIdx.x < 2 ? shared_m[threadIdx.x] : -3.402823466e+38f;
    for (int d = 16; d > 0; d >>= 1) m = fmaxf(m, __shfl_down_sync(0xffffffff, m, d));
    if (threadIdx.x == 0) shared_m[0] = m;
  }
  __syncthreads();
  m = shared_m[0];
  float s = 0.0f;
  for (int k = threadIdx.x; k < 40; k += 64) {
    s += expf((x0[i * 40 + k] - m));
  }
  for (int d = 16; d > 0; d >>= 1) s = s + __shfl_down_sync(0xffffffff, s, d);
  if ((threadIdx.x & 31) == 0) shared_s[threadIdx.x >> 5] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < 2 ? shared_s[threadIdx.x] : 0.0f;
    for (int d = 16; d > 0; d >>= 1) s = s + __shfl_down_sync(0xffffffff, s, d);
    if (threadIdx.x == 0) shared_s[0] = s;
  }
  __syncthreads();
  s = shared_s[0];
  for (int j = threadIdx.x; j < 40; j += 64) {
    y[i * 40 + j] = (expf((x0[i * 40 + j] - m)) / s);
  }
}
