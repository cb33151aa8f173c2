// spread(scale)
static inline unsigned ww_blocks(long long turns, unsigned block) {
    long long blocks = (turns + block - 1) / block;
    return (unsigned)(blocks < 1 ? 1 : blocks);
}
static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }
__global__ void scale(const float* x, float* y, float by, int rows, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int size = rows * columns;
  if (i < (rows * columns)) {
    y[i] = by * x[i];
  }
}

extern "C" void run(const float* x, float* y, float by, int rows, int columns) {
    scale<<<dim3(ww_blocks((long long)(((rows) * (columns))), 256), ww_copies(64, 256)), 256>>>(x, y, by, rows, columns);
}
