// cooperate(softmax_kernel, threads=32)
static inline unsigned ww_copies(dim3 grid, dim3 block) { return grid.y * grid.z * block.y * block.z; }
static inline long long ww_threads(dim3 grid, dim3 block) { return (long long)grid.x * block.x; }
static __device__ float ww_warp_max_float(float a) {
    for (int ww_far = 16; ww_far > 0; ww_far /= 2) {
        float b = __shfl_xor_sync(0xffffffffu, a, ww_far);
        a = fmaxf(a, b);
    }
    return a;
}
static __device__ float ww_warp_sum_float(float a) {
    for (int ww_far = 16; ww_far > 0; ww_far /= 2) {
        float b = __shfl_xor_sync(0xffffffffu, a, ww_far);
        a = a + b;
    }
    return a;
}
__global__ void softmax_kernel(const float* input, float* output, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int ww_lane = threadIdx.x % 32;
  if (row < rows) {
    float largest = -INFINITY;
    for (int j = 0 + ww_lane; j < columns; j += 32) {
      largest = fmaxf(largest, input[row * columns + j]);
    }
    largest = ww_warp_max_float(largest);
    float sum = 0.0f;
    float ww_part_sum = 0;
    for (int j_2 = 0 + ww_lane; j_2 < columns; j_2 += 32) {
      ww_part_sum += expf(input[row * columns + j_2] - largest);
    }
    sum = sum + ww_warp_sum_float(ww_part_sum);
    for (int j_3 = 0 + ww_lane; j_3 < columns; j_3 += 32) {
      output[row * columns + j_3] = expf(input[row * columns + j_3] - largest) / sum;
    }
  }
}

extern "C" void softmax(const float* input, float* output, int rows, int columns) {
    softmax_kernel<<<dim3((unsigned)((ww_threads((rows + 127) / 128, 128) * 32 + 255) / 256), ww_copies((rows + 127) / 128, 128)), 256>>>(input, output, rows, columns);
}
