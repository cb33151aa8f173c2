// constant_block(thirds)
__global__ void thirds(float* x, int n) {
    const int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) x[i] /= 3.0f;
}

extern "C" void run(float* x, int n) {
    dim3 block(96);
    thirds<<<(n + 96 - 1) / 96, block>>>(x, n);
}
