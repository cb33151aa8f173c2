// out = a x + y, one thread for each element.
__global__ void saxpy_kernel(int n, float a, const float* x, const float* y, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float* x, const float* y, float* out) {
    saxpy_kernel<<<(n + 31) / 32, 32>>>(n, a, x, y, out);
}
