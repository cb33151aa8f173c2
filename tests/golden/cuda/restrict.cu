// restrict(saxpy_kernel)
__global__ void saxpy_kernel(int n, float a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float* x, const float* y, float* out) {
    saxpy_kernel<<<(n + 255) / 256, 256>>>(n, a, x, y, out);
}
