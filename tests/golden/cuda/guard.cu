// guard(product)
static inline long long ww_threads(dim3 grid, dim3 block) { return (long long)grid.x * block.x; }
static inline long long ww_threads_y(dim3 grid, dim3 block) { return (long long)grid.y * block.y; }
__global__ void product(const float *a, const float *b, float *c, int n, long long ww_count_x, long long ww_count_y) {
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
    product<<<blocks, threads>>>(a, b, c, n, ww_threads(blocks, threads), ww_threads_y(blocks, threads));
}
