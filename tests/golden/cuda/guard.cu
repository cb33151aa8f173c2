// guard(product)
__global__ void product(const float *a, const float *b, float *c, int n, int ww_count_x, int ww_count_y) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < (int)ww_count_x && row < (int)ww_count_y) {
    c[row * n + column] = 0;
    for (int k = 0; k < n; k++) {
      c[row * n + column] += a[row * n + k] * b[k * n + column];
    }
  }
}

extern "C" void run(const float* a, const float* b, float* c, int n) {
    dim3 threads(16, 16);
    dim3 blocks(n / 16, n / 16);
    product<<<blocks, threads>>>(a, b, c, n, (int)(dim3(blocks).x * dim3(threads).x), (int)(dim3(blocks).y * dim3(threads).y));
}
