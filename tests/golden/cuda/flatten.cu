// flatten(copy_kernel)
static inline bool ww_covered(dim3 grid, dim3 block, long long columns, long long rows) {
    return (long long)grid.x * block.x >= columns && (long long)grid.y * block.y >= rows && grid.z * block.z == 1
        && columns > 0 && rows > 0 && columns <= 2147483647 / rows;
}
__global__ void copy_kernel(const float* from, float* to, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) {
        to[row * columns + column] = from[row * columns + column];
    }
}

__global__ void copy_kernel_flat(const float* from, float* to, int rows, int columns) {
  int ww_element = blockIdx.x * blockDim.x + threadIdx.x;
  if (ww_element < rows * columns) {
    to[ww_element] = from[ww_element];
  }
}


extern "C" void matrix_copy(const float* from, float* to, int rows, int columns) {
    dim3 block(16, 16);
    dim3 grid((rows + 15) / 16, (columns + 15) / 16);
    if (ww_covered(grid, block, rows, columns)) { copy_kernel_flat<<<(unsigned)(((long long)(rows) * (columns) + 255) / 256), 256>>>(from, to, rows, columns); } else copy_kernel<<<grid, block>>>(from, to, rows, columns);
}
