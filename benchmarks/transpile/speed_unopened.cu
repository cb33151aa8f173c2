// Five more kernels of common kinds, written with those of speed_outside.cu, and not tried before the compiler was changed for those.
// each channel by its own 3x3 weights: a thread each number of the output
__global__ void depthwise(const float* in, const float* weight, const float* bias, float* out, int n, int C, int H, int W) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int w = i % W, h = (i / W) % H, c = (i / W / H) % C;
  const float* k = weight + c * 9;
  float sum = bias[c];
  for (int dh = 0; dh < 3; ++dh)
    for (int dw = 0; dw < 3; ++dw) {
      const int y = h + dh - 1, x = w + dw - 1;
      if (y >= 0 && y < H && x >= 0 && x < W) sum += in[i + (dh - 1) * W + dw - 1] * k[dh * 3 + dw];
    }
  out[i] = sum;
}
// which boxes overlap each by more than a threshold, 64 boxes a word: a thread a box
__global__ void overlaps(const float4* boxes, int n, float threshold, unsigned long long* mask) {
  __shared__ float4 other[64];
  const int words = (n + 63) / 64, size = min(n - blockIdx.x * 64, 64), t = threadIdx.x;
  if (t < size) other[t] = boxes[blockIdx.x * 64 + t];
  __syncthreads();
  const int own = blockIdx.y * 64 + t;
  if (own < n) {
    const float4 a = boxes[own];
    unsigned long long bits = 0;
    for (int i = 0; i < size; ++i) {
      const float4 b = other[i];
      const float w = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0.f), h = fmaxf(fminf(a.w, b.w) - fmaxf(a.y, b.y), 0.f), both = w * h;
      const float either = (a.z - a.x) * (a.w - a.y) + (b.z - b.x) * (b.w - b.y) - both;
      if (both > threshold * either) bits |= 1ULL << i;
    }
    mask[own * words + blockIdx.x] = bits;
  }
}
__device__ float warp_sum(float v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  return v;
}
// a block a group of channels of an image
__global__ void group_norm(const float* x, const float* gain, const float* bias, float* y, int size, int HW, int per_group, int groups) {
  __shared__ float sums[32], squares[32];
  const int t = threadIdx.x, first = (blockIdx.x % groups) * per_group;
  const float* in = x + blockIdx.x * size;
  float* out = y + blockIdx.x * size;
  float sum = 0.f, square = 0.f;
  for (int i = t; i < size; i += blockDim.x) {
    sum += in[i];
    square += in[i] * in[i];
  }
  sum = warp_sum(sum);
  square = warp_sum(square);
  if (t % 32 == 0) {
    sums[t / 32] = sum;
    squares[t / 32] = square;
  }
  __syncthreads();
  if (t < 32) {
    sum = warp_sum(t < blockDim.x / 32 ? sums[t] : 0.f);
    square = warp_sum(t < blockDim.x / 32 ? squares[t] : 0.f);
    if (t == 0) {
      sums[0] = sum / size;
      squares[0] = rsqrtf(square / size - sum / size * (sum / size) + 1e-5f);
    }
  }
  __syncthreads();
  const float mean = sums[0], scale = squares[0];
  for (int i = t; i < size; i += blockDim.x) {
    const int c = first + i / HW;
    out[i] = (in[i] - mean) * scale * gain[c] + bias[c];
  }
}
// a number for each place from its index: what is below the share goes
__global__ void dropout(const float* x, float* y, unsigned char* kept, int n, unsigned seed, float share) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    unsigned h = i ^ seed;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    const bool keep = (h >> 8) * (1.f / 16777216.f) >= share;
    kept[i] = keep;
    y[i] = keep ? x[i] / (1.f - share) : 0.f;
  }
}
// y = x^T + y, through shared memory
__global__ void transpose_add(const float* x, float* y, int W, int H) {
  __shared__ float s[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (c < W && r + j < H) s[threadIdx.y + j][threadIdx.x] = x[(r + j) * W + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (c < H && r + j < W) y[(r + j) * H + c] += s[threadIdx.x][threadIdx.y + j];
}
