// block(saxpy_kernel, x=128)
static inline dim3 ww_cover(dim3 grid, dim3 block, unsigned x, unsigned y) {
    return dim3((grid.x * block.x + x - 1) / x, (grid.y * block.y + y - 1) / y, grid.z * block.z);
}
__global__ void saxpy_kernel(int n, float a, const float* x, const float* y, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float* x, const float* y, float* out) {
    saxpy_kernel<<<ww_cover((n + 255) / 256, 256, 128, 1), dim3(128, 1)>>>(n, a, x, y, out);
}
