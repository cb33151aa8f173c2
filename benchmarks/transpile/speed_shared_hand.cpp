// What an OpenMP programmer writes for the kernels of speed_ladder.cu and speed_shared.cu: plain loops, none of them blocked by hand.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>
extern "C" {
__attribute__((simd("notinbranch"))) float expf(float) noexcept;
__attribute__((simd("notinbranch"))) float sinf(float) noexcept;
__attribute__((simd("notinbranch"))) float cosf(float) noexcept;
}
extern "C" {
void ladder(int M, int N, int K, float alpha, const float* __restrict A, const float* __restrict B, float beta, float* __restrict C) {
#pragma omp parallel
  {
    std::vector<float> row(N);
#pragma omp for
    for (int i = 0; i < M; ++i) {
      std::fill(row.begin(), row.end(), 0.f);
      float* c = row.data();
      for (int k = 0; k < K; ++k) {
        const float a = A[i * K + k];
#pragma omp simd
        for (int j = 0; j < N; ++j) c[j] += a * B[k * N + j];
      }
#pragma omp simd
      for (int j = 0; j < N; ++j) C[i * N + j] = alpha * c[j] + beta * C[i * N + j];
    }
  }
}
void stencil_shared(const float* __restrict in, float* __restrict out, int W, int H) {
#pragma omp parallel for
  for (int y = 1; y < H - 1; ++y)
#pragma omp simd
    for (int x = 1; x < W - 1; ++x) out[y * W + x] = 0.25f * (in[y * W + x - 1] + in[y * W + x + 1] + in[(y - 1) * W + x] + in[(y + 1) * W + x]);
}
void stencil_row(const float* __restrict in, float* __restrict out, int n) {
  const auto at = [&](int i) { return i >= 0 && i < n ? in[i] : 0.f; };
  for (int i = 0; i < 4; ++i) for (int edge : {i, n - 1 - i}) {
    out[edge] = 0;
    for (int j = -4; j <= 4; ++j) out[edge] += at(edge + j);
  }
#pragma omp parallel for simd
  for (int i = 4; i < n - 4; ++i) {
    float sum = 0;
    for (int j = -4; j <= 4; ++j) sum += in[i + j];
    out[i] = sum;
  }
}
void tree(const float* __restrict x, float* __restrict out, int blocks, int size) {
#pragma omp parallel for
  for (int b = 0; b < blocks; ++b) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < size; ++i) sum += x[b * size + i];
    out[b] = sum;
  }
}
void histogram_global(const unsigned char* data, unsigned* bins, int n) {
#pragma omp parallel
  {
    unsigned local[256] = {};
#pragma omp for nowait
    for (int i = 0; i < n; ++i) ++local[data[i]];
    for (int b = 0; b < 256; ++b)
#pragma omp atomic
      bins[b] += local[b];
  }
}
void flash(const float* __restrict Q, const float* __restrict K, const float* __restrict V, int heads, int N, int d, float scale, float* __restrict O) {
#pragma omp parallel for collapse(2)
  for (int h = 0; h < heads; ++h) for (int i = 0; i < N; ++i) {
    std::vector<float> s(N);
    const float* q = Q + (h * N + i) * d;
    float m = -INFINITY, l = 0;
    for (int j = 0; j < N; ++j) {
      const float* k = K + (h * N + j) * d;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int x = 0; x < d; ++x) sum += q[x] * k[x];
      s[j] = sum * scale;
      m = s[j] > m ? s[j] : m;
    }
#pragma omp simd reduction(+ : l)
    for (int j = 0; j < N; ++j) { s[j] = expf(s[j] - m); l += s[j]; }
    float* o = O + (h * N + i) * d;
    for (int x = 0; x < d; ++x) o[x] = 0;
    for (int j = 0; j < N; ++j)
#pragma omp simd
      for (int x = 0; x < d; ++x) o[x] += s[j] * V[(h * N + j) * d + x];
    for (int x = 0; x < d; ++x) o[x] /= l;
  }
}
void scores(const float* __restrict q, const float* __restrict k, float* __restrict out, int heads, int T, int d, float scale) {
#pragma omp parallel for collapse(2)
  for (int h = 0; h < heads; ++h) for (int i = 0; i < T; ++i) {
    float* o = out + (h * T + i) * T;
    for (int j = 0; j < T; ++j) {
      if (j > i) { o[j] = -1e9f; continue; }
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int x = 0; x < d; ++x) sum += q[(h * T + i) * d + x] * k[(h * T + j) * d + x];
      o[j] = sum * scale;
    }
  }
}
void layernorm_shared(const float* __restrict x, const float* __restrict gain, const float* __restrict bias, float* __restrict y, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < cols; ++i) sum += p[i];
    const float mean = sum / cols;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < cols; ++i) squares += (p[i] - mean) * (p[i] - mean);
    const float scale = 1 / std::sqrt(squares / cols + 1e-5f);
#pragma omp simd
    for (int i = 0; i < cols; ++i) y[r * cols + i] = (p[i] - mean) * scale * gain[i] + bias[i];
  }
}
void sobel(const unsigned char* __restrict in, unsigned char* __restrict out, int W, int H) {
#pragma omp parallel for
  for (int y = 0; y < H; ++y) {
    const unsigned char *u = in + std::max(y - 1, 0) * W, *c = in + y * W, *b = in + std::min(y + 1, H - 1) * W;
    const auto one = [&](int x, int l, int r) {
      const int dx = u[r] + 2 * c[r] + b[r] - u[l] - 2 * c[l] - b[l], dy = b[l] + 2 * b[x] + b[r] - u[l] - 2 * u[x] - u[r];
      out[y * W + x] = (unsigned char)std::min(std::abs(dx) + std::abs(dy), 255);
    };
    one(0, 0, 1);
    one(W - 1, W - 2, W - 1);
#pragma omp simd
    for (int x = 1; x < W - 1; ++x) one(x, x - 1, x + 1);
  }
}
static const float taps[17] = {.01f, .02f, .03f, .04f, .06f, .08f, .09f, .1f, .14f, .1f, .09f, .08f, .06f, .04f, .03f, .02f, .01f};
void filter_rows(const float* __restrict in, float* __restrict out, int W, int H) {
#pragma omp parallel for
  for (int y = 0; y < H; ++y) {
    const float* p = in + y * W;
    float* q = out + y * W;
    for (int x = 0; x < W; x = x == 7 ? W - 8 : x + 1) {
      q[x] = 0;
      for (int j = -8; j <= 8; ++j) if (x + j >= 0 && x + j < W) q[x] += taps[8 - j] * p[x + j];
    }
#pragma omp simd
    for (int x = 8; x < W - 8; ++x) {
      float sum = 0;
      for (int j = -8; j <= 8; ++j) sum += taps[8 - j] * p[x + j];
      q[x] = sum;
    }
  }
}
void nearest(const float* __restrict points, const float* __restrict centres, int* __restrict best, int n, int k) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) {
    int at = 0;
    float least = 3.4e38f;
    for (int c = 0; c < k; ++c) {
      float distance = 0;
      for (int f = 0; f < 8; ++f) {
        const float d = points[f * n + i] - centres[c * 8 + f];
        distance += d * d;
      }
      at = distance < least ? c : at;
      least = distance < least ? distance : least;
    }
    best[i] = at;
  }
}
void life(const int* __restrict in, int* __restrict out, int W, int H) {
#pragma omp parallel for
  for (int y = 0; y < H; ++y) {
    const int *u = in + (y + H - 1) % H * W, *c = in + y * W, *b = in + (y + 1) % H * W;
    const auto one = [&](int x, int l, int r) {
      const int n = u[l] + u[x] + u[r] + c[l] + c[r] + b[l] + b[x] + b[r];
      out[y * W + x] = (n == 3) | ((n == 2) & (c[x] != 0));
    };
    one(0, W - 1, 1);
    one(W - 1, W - 2, 0);
#pragma omp simd
    for (int x = 1; x < W - 1; ++x) one(x, x - 1, x + 1);
  }
}
void relu4(const float* __restrict x, float* __restrict y, int n) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) y[i] = x[i] > 0.f ? x[i] : 0.f;
}
void rope(const float* __restrict x, const float* __restrict angle, float* __restrict y, int n, int half) {
#pragma omp parallel for
  for (int r = 0; r < n / half; ++r)
#pragma omp simd
    for (int j = 0; j < half; ++j) {
      const float s = sinf(angle[j]), c = cosf(angle[j]), a = x[2 * (r * half + j)], b = x[2 * (r * half + j) + 1];
      y[2 * (r * half + j)] = a * c - b * s;
      y[2 * (r * half + j) + 1] = a * s + b * c;
    }
}
void collatz(int* out, int n, int most) {
#pragma omp parallel for schedule(dynamic, 256)
  for (int i = 0; i < n; ++i) {
    unsigned value = i + 1;
    int steps = 0;
    while (steps < most && value != 1) {
      value = value % 2 == 0 ? value / 2 : 3 * value + 1;
      ++steps;
    }
    out[i] = steps;
  }
}
void row_products(const float* __restrict A, const float* __restrict x, float* __restrict y, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < cols; ++c) sum += A[r * cols + c] * x[c];
    y[r] = sum;
  }
}
}
