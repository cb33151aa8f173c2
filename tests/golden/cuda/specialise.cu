// specialise(product)
template <typename T, int ROWS>
__global__ void product(T* out, const T* matrix, const T* vector, int m, int n) {
    int i = blockIdx.x * ROWS + threadIdx.x;
    if (i >= m) return;
    T sum = 0;
    for (int k = 0; k < n; ++k) sum += matrix[i * n + k] * vector[k];
    out[i] = sum;
}

__global__ void product_float_128(float* out, const float* matrix, const float* vector, int m, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= m) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += matrix[i * n + k] * vector[k];
    out[i] = sum;
}


extern "C" void matvec(float* out, const float* matrix, const float* vector, int m, int n) {
    product_float_128<<<(m + 127) / 128, 128>>>(out, matrix, vector, m, n);
}
