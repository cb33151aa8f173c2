// swap_axes(matrix_add_kernel)
static inline dim3 ww_swapped(dim3 shape) { return dim3(shape.y, shape.x, shape.z); }
__global__ void matrix_add_kernel(const float* a, const float* b, float* c, int rows, int columns) {
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows && j < columns) {
        c[i * columns + j] = a[i * columns + j] + b[i * columns + j];
    }
}

extern "C" void matrix_add(const float* a, const float* b, float* c, int rows, int columns) {
    dim3 block(16, 16);
    dim3 grid((rows + 15) / 16, (columns + 15) / 16);
    matrix_add_kernel<<<ww_swapped(grid), ww_swapped(block)>>>(a, b, c, rows, columns);
}
