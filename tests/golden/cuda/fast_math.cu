// fast_math()
// flags: --use_fast_math
__global__ void softmax_kernel(const float* input, float* output, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float largest = -INFINITY;
    for (int j = 0; j < columns; j++) {
        largest = fmaxf(largest, input[row * columns + j]);
    }
    float sum = 0.0f;
    for (int j = 0; j < columns; j++) {
        sum += expf(input[row * columns + j] - largest);
    }
    for (int j = 0; j < columns; j++) {
        output[row * columns + j] = expf(input[row * columns + j] - largest) / sum;
    }
}

extern "C" void softmax(const float* input, float* output, int rows, int columns) {
    softmax_kernel<<<(rows + 127) / 128, 128>>>(input, output, rows, columns);
}
