// unroll(convolution_kernel, times=4)
__global__ void convolution_kernel(const float* image, const float* filter, float* out, int height, int width, int taps) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int out_width = width - taps + 1;
  int out_height = height - taps + 1;
  if (x < out_width && y < out_height) {
    float sum = 0.0f;
    for (int i = 0; i < taps; ++i) {
            #pragma unroll 4
      for (int j = 0; j < taps; ++j) {
        sum += image[(y + i) * width + (x + j)] * filter[i * taps + j];
      }
    }
    out[y * out_width + x] = sum;
  }
}

extern "C" void convolution(const float* image, const float* filter, float* out, int height, int width, int taps) {
    dim3 block(16, 16);
    dim3 grid((width + 15) / 16, (height + 15) / 16);
    convolution_kernel<<<grid, block>>>(image, filter, out, height, width, taps);
}
