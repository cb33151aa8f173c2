// What an OpenMP programmer writes for the kernels of speed_outside.cu: plain loops.
#include <algorithm>
#include <cmath>
#include <cstdlib>
extern "C" {
__attribute__((simd("notinbranch"))) float expf(float) noexcept;
}
extern "C" {
void im2col(const float* __restrict image, float* __restrict columns, int C, int H, int W, int K) {
#pragma omp parallel for collapse(3)
  for (int c = 0; c < C; ++c) for (int kh = 0; kh < K; ++kh) for (int kw = 0; kw < K; ++kw)
    for (int oh = 0; oh < H; ++oh) {
      const int h = oh + kh - K / 2;
      float* out = columns + (((c * K + kh) * K + kw) * H + oh) * W;
      if (h < 0 || h >= H) { std::fill(out, out + W, 0.f); continue; }
#pragma omp simd
      for (int ow = 0; ow < W; ++ow) {
        const int w = ow + kw - K / 2;
        out[ow] = w >= 0 && w < W ? image[(c * H + h) * W + w] : 0.f;
      }
    }
}
void red_black(float* __restrict u, const float* __restrict f, int W, int H, int colour) {
#pragma omp parallel for
  for (int y = 1; y < H - 1; ++y)
    for (int x = 1 + (1 + y + colour) % 2; x < W - 1; x += 2)
      u[y * W + x] = 0.25f * (u[y * W + x - 1] + u[y * W + x + 1] + u[(y - 1) * W + x] + u[(y + 1) * W + x] - f[y * W + x]);
}
void ema(const float* __restrict x, float* __restrict y, int rows, int cols, float decay) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float state = 0;
    for (int c = 0; c < cols; ++c) {
      state = decay * state + (1.f - decay) * x[r * cols + c];
      y[r * cols + c] = state;
    }
  }
}
void argmax_rows(const float* __restrict x, int* __restrict best, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float most = p[0];
#pragma omp simd reduction(max : most)
    for (int c = 1; c < cols; ++c) most = p[c] > most ? p[c] : most;
    int at = 0;
    while (p[at] != most) ++at;
    best[r] = at;
  }
}
void spmm(const int* __restrict start, const int* __restrict column, const float* __restrict value, const float* __restrict B, float* __restrict C, int rows, int width) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float* c = C + r * width;
    for (int j = 0; j < width; ++j) c[j] = 0;
    for (int i = start[r]; i < start[r + 1]; ++i)
#pragma omp simd
      for (int j = 0; j < width; ++j) c[j] += value[i] * B[column[i] * width + j];
  }
}
void resize(const float* __restrict in, float* __restrict out, int C, int H, int W, int OH, int OW, float sh, float sw) {
#pragma omp parallel for collapse(2)
  for (int c = 0; c < C; ++c) for (int oh = 0; oh < OH; ++oh) {
    const float fh = std::max((oh + 0.5f) * sh - 0.5f, 0.f);
    const int h0 = (int)fh, h1 = std::min(h0 + 1, H - 1);
    const float ah = fh - h0, *p = in + c * H * W;
#pragma omp simd
    for (int ow = 0; ow < OW; ++ow) {
      const float fw = std::max((ow + 0.5f) * sw - 0.5f, 0.f);
      const int w0 = (int)fw, w1 = std::min(w0 + 1, W - 1);
      const float aw = fw - w0;
      const float top = p[h0 * W + w0] * (1.f - aw) + p[h0 * W + w1] * aw, low = p[h1 * W + w0] * (1.f - aw) + p[h1 * W + w1] * aw;
      out[(c * OH + oh) * OW + ow] = top * (1.f - ah) + low * ah;
    }
  }
}
void quantise_rows(const float* __restrict x, signed char* __restrict q, float* __restrict scales, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    const float* p = x + r * cols;
    float most = 0;
#pragma omp simd reduction(max : most)
    for (int i = 0; i < cols; ++i) most = std::max(most, std::fabs(p[i]));
    const float scale = most / 127.f, inverse = scale > 0 ? 1.f / scale : 0.f;
    scales[r] = scale;
#pragma omp simd
    for (int i = 0; i < cols; ++i) q[r * cols + i] = (signed char)std::min(std::max(std::rint(p[i] * inverse), -127.f), 127.f);
  }
}
void cumsum_rows(const float* __restrict x, float* __restrict y, int rows, int cols) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int c = 0; c < cols; ++c) y[r * cols + c] = sum += x[r * cols + c];
  }
}
void route(const float* __restrict logits, int* __restrict expert, float* __restrict gate, int tokens, int E) {
#pragma omp parallel for
  for (int t = 0; t < tokens; ++t) {
    const float* l = logits + t * E;
    int at = 0;
    float sum = 0;
    for (int e = 1; e < E; ++e) if (l[e] > l[at]) at = e;
    const float most = l[at];
#pragma omp simd reduction(+ : sum)
    for (int e = 0; e < E; ++e) sum += expf(l[e] - most);
    expert[t] = at;
    gate[t] = 1.f / sum;
  }
}
void weight_gradients(const float* __restrict dout, const float* __restrict x, const float* __restrict means, const float* __restrict scales, float* __restrict dweight, float* __restrict dbias,
                      int rows, int cols) {
#pragma omp parallel for
  for (int first = 0; first < cols; first += 64) {
    const int last = std::min(first + 64, cols);
    for (int c = first; c < last; ++c) dweight[c] = dbias[c] = 0;
    for (int r = 0; r < rows; ++r)
#pragma omp simd
      for (int c = first; c < last; ++c) {
        const float d = dout[r * cols + c];
        dweight[c] += d * (x[r * cols + c] - means[r]) * scales[r];
        dbias[c] += d;
      }
  }
}
}
