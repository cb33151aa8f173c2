// What an OpenMP programmer writes for the kernels of speed_unopened.cu: plain loops.
#include <algorithm>
#include <cmath>
#include <cstdint>
extern "C" {
void depthwise(const float* __restrict in, const float* __restrict weight, const float* __restrict bias, float* __restrict out, int N, int C, int H, int W) {
#pragma omp parallel for
  for (int p = 0; p < N * C; ++p) {
    const float *a = in + p * H * W, *k = weight + p % C * 9;
    float* o = out + p * H * W;
    const auto one = [&](int y, int x) {
      float sum = bias[p % C];
      for (int dh = 0; dh < 3; ++dh) for (int dw = 0; dw < 3; ++dw) {
        const int v = y + dh - 1, u = x + dw - 1;
        if (v >= 0 && v < H && u >= 0 && u < W) sum += a[v * W + u] * k[dh * 3 + dw];
      }
      o[y * W + x] = sum;
    };
    for (int y = 0; y < H; ++y) {
      if (y == 0 || y == H - 1) { for (int x = 0; x < W; ++x) one(y, x); continue; }
      one(y, 0);
      one(y, W - 1);
      const float b = bias[p % C];
#pragma omp simd
      for (int x = 1; x < W - 1; ++x) {
        float sum = b;
        for (int dh = 0; dh < 3; ++dh) for (int dw = 0; dw < 3; ++dw) sum += a[(y + dh - 1) * W + x + dw - 1] * k[dh * 3 + dw];
        o[y * W + x] = sum;
      }
    }
  }
}
void overlaps(const float* __restrict boxes, int n, float threshold, uint64_t* __restrict mask) {
  const int words = (n + 63) / 64;
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
    const float *a = boxes + 4 * i, area = (a[2] - a[0]) * (a[3] - a[1]);
    for (int w = 0; w < words; ++w) {
      uint64_t bits = 0;
      for (int j = 0; j < 64 && 64 * w + j < n; ++j) {
        const float* b = boxes + 4 * (64 * w + j);
        const float x = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]), 0.f), y = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]), 0.f);
        bits |= uint64_t(x * y > threshold * (area + (b[2] - b[0]) * (b[3] - b[1]) - x * y)) << j;
      }
      mask[i * words + w] = bits;
    }
  }
}
void group_norm(const float* __restrict x, const float* __restrict gain, const float* __restrict bias, float* __restrict y, int blocks, int HW, int per_group, int groups) {
  const int size = HW * per_group;
#pragma omp parallel for
  for (int b = 0; b < blocks; ++b) {
    const float* p = x + b * size;
    float sum = 0, square = 0;
#pragma omp simd reduction(+ : sum, square)
    for (int i = 0; i < size; ++i) { sum += p[i]; square += p[i] * p[i]; }
    const float mean = sum / size, scale = 1 / std::sqrt(square / size - mean * mean + 1e-5f);
    for (int c = 0; c < per_group; ++c) {
      const float g = gain[b % groups * per_group + c], o = bias[b % groups * per_group + c];
#pragma omp simd
      for (int i = c * HW; i < (c + 1) * HW; ++i) y[b * size + i] = (p[i] - mean) * scale * g + o;
    }
  }
}
void dropout(const float* __restrict x, float* __restrict y, unsigned char* __restrict kept, int n, unsigned seed, float share) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) {
    unsigned h = i ^ seed;
    h ^= h >> 16, h *= 0x85ebca6bu, h ^= h >> 13, h *= 0xc2b2ae35u, h ^= h >> 16;
    const bool keep = (h >> 8) * (1.f / 16777216.f) >= share;
    kept[i] = keep;
    y[i] = keep ? x[i] / (1.f - share) : 0.f;
  }
}
void transpose_add(const float* __restrict x, float* __restrict y, int W, int H) {
#pragma omp parallel for
  for (int r = 0; r < W; ++r)
#pragma omp simd
    for (int c = 0; c < H; ++c) y[r * H + c] += x[c * W + r];
}
}
