// Sums of the rows of a matrix, one thread for each row.
__global__ void row_sum_kernel(const float* x, float* out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int j = 0; j < columns; ++j) {
            sum += x[row * columns + j];
        }
        out[row] = sum;
    }
}

extern "C" void row_sum(const float* x, float* out, int rows, int columns) {
    row_sum_kernel<<<(rows + 255) / 256, 256>>>(x, out, rows, columns);
}
