// local_sum(product)
__global__ void product(const float *a, const float *b, float *c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float ww_sum_0 = 0;
  for (int k = 0; k < n; k++) {
    ww_sum_0 += a[row * n + k] * b[k * n + column];
  }
  c[row * n + column] = ww_sum_0;
}

extern "C" void run(const float* a, const float* b, float* c, int n) {
    dim3 threads(16, 16);
    dim3 blocks(n / 16, n / 16);
    product<<<blocks, threads>>>(a, b, c, n);
}
