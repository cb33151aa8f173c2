// The same by hand for a CPU: plain loops, OpenMP over the outer one, omp simd on the inner one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
// glibc's vector functions (libmvec, up to 4 ulp), which g++ offers without this only under -ffast-math
extern "C" {
__attribute__((simd("notinbranch"))) float expf(float) noexcept;
__attribute__((simd("notinbranch"))) float logf(float) noexcept;
__attribute__((simd("notinbranch"))) float tanhf(float) noexcept;
__attribute__((simd("notinbranch"))) float erfcf(float) noexcept;
}
extern "C" {
void saxpy(int n, float a, const float* __restrict x, float* __restrict y) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
void gemm(const float* __restrict A, const float* __restrict B, float* __restrict C, int M, int N, int K) {
#pragma omp parallel for collapse(2)
  for (int i = 0; i < M; i += 4) for (int j = 0; j < N; j += 16) {
    float c[4][16] = {};
    for (int k = 0; k < K; ++k) for (int r = 0; r < 4; ++r) {
      const float a = A[(i + r) * K + k];
#pragma omp simd
      for (int q = 0; q < 16; ++q) c[r][q] += a * B[k * N + j + q];
    }
    for (int r = 0; r < 4; ++r) for (int q = 0; q < 16; ++q) C[(i + r) * N + j + q] = c[r][q];
  }
}
void stencil(const float* __restrict in, float* __restrict out, int W, int H) {
#pragma omp parallel for
  for (int y = 1; y < H - 1; ++y)
#pragma omp simd
    for (int x = 1; x < W - 1; ++x) out[y * W + x] = 0.25f * (in[y * W + x - 1] + in[y * W + x + 1] + in[(y - 1) * W + x] + in[(y + 1) * W + x]);
}
void softmax(const float* __restrict x, float* __restrict y, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float* q = y + r * cols;
    float m = -INFINITY, d = 0;
#pragma omp simd reduction(max : m)
    for (int i = 0; i < cols; ++i) m = p[i] > m ? p[i] : m;
#pragma omp simd reduction(+ : d)
    for (int i = 0; i < cols; ++i) { q[i] = expf(p[i] - m); d += q[i]; }
    d = 1 / d;
#pragma omp simd
    for (int i = 0; i < cols; ++i) q[i] *= d;
  }
}
void reduce(const float* __restrict x, float* out, int n) {
  float r = 0;
#pragma omp parallel for simd reduction(+ : r)
  for (int i = 0; i < n; ++i) r += x[i];
  *out = r;
}
void histogram(const unsigned char* data, unsigned* bins, int n) {
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
void transpose(const float* __restrict in, float* __restrict out, int n) {
#pragma omp parallel for collapse(2)
  for (int i = 0; i < n; i += 32) for (int j = 0; j < n; j += 32)
    for (int a = i; a < i + 32; ++a) for (int b = j; b < j + 32; ++b) out[b * n + a] = in[a * n + b];
}
void layernorm(const float* __restrict x, const float* __restrict gain, const float* __restrict bias, float* __restrict y, int rows, int cols, float eps) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float* q = y + r * cols;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < cols; ++i) sum += p[i];
    const float mean = sum / cols;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < cols; ++i) squares += (p[i] - mean) * (p[i] - mean);
    const float scale = 1 / std::sqrt(squares / cols + eps);
#pragma omp simd
    for (int i = 0; i < cols; ++i) q[i] = (p[i] - mean) * scale * gain[i] + bias[i];
  }
}
void rmsnorm(const float* __restrict x, const float* __restrict gain, float* __restrict y, int rows, int cols, float eps) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float* q = y + r * cols;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < cols; ++i) squares += p[i] * p[i];
    const float scale = 1 / std::sqrt(squares / cols + eps);
#pragma omp simd
    for (int i = 0; i < cols; ++i) q[i] = p[i] * scale * gain[i];
  }
}
void matvec(const float* __restrict A, const float* __restrict x, float* __restrict y, int batches, int rows, int cols) {
#pragma omp parallel for collapse(2)
  for (int b = 0; b < batches; ++b) for (int r = 0; r < rows; ++r) {
    const float *a = A + (b * rows + r) * cols, *v = x + b * cols;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < cols; ++i) sum += a[i] * v[i];
    y[b * rows + r] = sum;
  }
}
void scan(const float* __restrict x, float* __restrict y, int rows) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int i = 0; i < 512; ++i) {
      y[r * 512 + i] = sum;
      sum += x[r * 512 + i];
    }
  }
}
void conv3x3(const float* __restrict in, const float* __restrict weight, float* __restrict out, int W, int H) {
  const auto edge = [&](int x, int y) {
    float sum = 0;
    for (int dy = -1; dy < 2; ++dy) for (int dx = -1; dx < 2; ++dx)
      if (x + dx >= 0 && x + dx < W && y + dy >= 0 && y + dy < H) sum += weight[dy * 3 + dx + 4] * in[(y + dy) * W + x + dx];
    out[y * W + x] = sum;
  };
  float w[9];
  for (int i = 0; i < 9; ++i) w[i] = weight[i];
#pragma omp parallel for
  for (int y = 0; y < H; ++y) {
    if (y == 0 || y == H - 1) {
      for (int x = 0; x < W; ++x) edge(x, y);
      continue;
    }
    const float *a = in + (y - 1) * W, *b = a + W, *c = b + W;
    edge(0, y);
#pragma omp simd
    for (int x = 1; x < W - 1; ++x)
      out[y * W + x] = w[0] * a[x - 1] + w[1] * a[x] + w[2] * a[x + 1] + w[3] * b[x - 1] + w[4] * b[x] + w[5] * b[x + 1] + w[6] * c[x - 1] + w[7] * c[x] + w[8] * c[x + 1];
    edge(W - 1, y);
  }
}
void nbody(const float* __restrict body, float* __restrict force, int n, float soft) {
  // Positions and masses apart: the loop over the others reads four rows.
  std::vector<float> parts(4 * n);
  float *px = parts.data(), *py = px + n, *pz = py + n, *mass = pz + n;
  for (int i = 0; i < n; ++i) px[i] = body[4 * i], py[i] = body[4 * i + 1], pz[i] = body[4 * i + 2], mass[i] = body[4 * i + 3];
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
    const float x = px[i], y = py[i], z = pz[i];
    float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
    for (int j = 0; j < n; ++j) {
      const float dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
      const float r = 1 / std::sqrt(dx * dx + dy * dy + dz * dz + soft);
      const float s = mass[j] * r * r * r;
      ax += dx * s, ay += dy * s, az += dz * s;
    }
    force[4 * i] = ax, force[4 * i + 1] = ay, force[4 * i + 2] = az, force[4 * i + 3] = 0;
  }
}
void blackscholes(const float* __restrict price, const float* __restrict strike, const float* __restrict years, float* __restrict call, float* __restrict put, float rate, float spread, int n) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) {
    const float s = price[i], k = strike[i], t = years[i], root = spread * sqrtf(t);
    const float d1 = (logf(s / k) + (rate + 0.5f * spread * spread) * t) / root, d2 = d1 - root;
    const float later = k * expf(-rate * t), share1 = 0.5f * erfcf(-0.70710678f * d1), share2 = 0.5f * erfcf(-0.70710678f * d2);
    call[i] = s * share1 - later * share2;
    put[i] = call[i] + later - s;
  }
}
void gather(const int* __restrict number, const float* __restrict table, float* __restrict out, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) std::memcpy(out + r * cols, table + number[r] * cols, cols * sizeof(float));
}
void maxpool(const float* __restrict in, float* __restrict out, int planes, int W, int H) {
#pragma omp parallel for collapse(2)
  for (int z = 0; z < planes; ++z) for (int y = 0; y < H / 2; ++y) {
    const float* p = in + z * W * H + 2 * y * W;
    float* q = out + (z * (H / 2) + y) * (W / 2);
#pragma omp simd
    for (int x = 0; x < W / 2; ++x) q[x] = std::max(std::max(p[2 * x], p[2 * x + 1]), std::max(p[W + 2 * x], p[W + 2 * x + 1]));
  }
}
void gelu_bias(const float* __restrict x, const float* __restrict bias, float* __restrict y, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r)
#pragma omp simd
    for (int i = 0; i < cols; ++i) {
      const float v = x[r * cols + i] + bias[i];
      y[r * cols + i] = 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    }
}
void cross_entropy(const float* __restrict x, const int* __restrict label, float* __restrict loss, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float most = -INFINITY, sum = 0;
#pragma omp simd reduction(max : most)
    for (int i = 0; i < cols; ++i) most = p[i] > most ? p[i] : most;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < cols; ++i) sum += expf(p[i] - most);
    loss[r] = std::log(sum) + most - p[label[r]];
  }
}
void spmv(const int* __restrict start, const int* __restrict column, const float* __restrict value, const float* __restrict x, float* __restrict y, int rows) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = start[r]; i < start[r + 1]; ++i) sum += value[i] * x[column[i]];
    y[r] = sum;
  }
}
void bitonic(const float* __restrict x, float* __restrict y, int rows) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    std::memcpy(y + r * 512, x + r * 512, 512 * sizeof(float));
    std::sort(y + r * 512, y + r * 512 + 512);
  }
}
void dot(const float* __restrict x, const float* __restrict y, float* out, int n) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  *out = sum;
}
}
