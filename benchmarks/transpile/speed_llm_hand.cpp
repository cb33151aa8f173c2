// What an OpenMP programmer writes for the kernels of speed_llm.cu: plain loops over the same numbers, none of them blocked by hand.
#include <algorithm>
#include <cmath>
#include <cstring>
extern "C" {
__attribute__((simd("notinbranch"))) float expf(float) noexcept;
__attribute__((simd("notinbranch"))) float logf(float) noexcept;
__attribute__((simd("notinbranch"))) float tanhf(float) noexcept;
__attribute__((simd("notinbranch"))) float coshf(float) noexcept;
}
extern "C" {
void embed(const int* __restrict tokens, const float* __restrict words, const float* __restrict places, float* __restrict out, int B, int T, int C) {
#pragma omp parallel for
  for (int bt = 0; bt < B * T; ++bt) {
    const float *w = words + tokens[bt] * C, *p = places + bt % T * C;
#pragma omp simd
    for (int c = 0; c < C; ++c) out[bt * C + c] = w[c] + p[c];
  }
}
void embed_backward(const int* __restrict tokens, float* __restrict dwords, float* __restrict dplaces, const float* __restrict dout, int B, int T, int C) {
#pragma omp parallel for
  for (int first = 0; first < C; first += 64)  // each thread has channels of its own
    for (int bt = 0; bt < B * T; ++bt) {
      float *w = dwords + tokens[bt] * C, *p = dplaces + bt % T * C;
#pragma omp simd
      for (int c = first; c < std::min(first + 64, C); ++c) w[c] += dout[bt * C + c], p[c] += dout[bt * C + c];
    }
}
void norm(float* __restrict out, float* __restrict means, float* __restrict scales, const float* __restrict x, const float* __restrict weight, const float* __restrict bias, int N, int C) {
#pragma omp parallel for
  for (int r = 0; r < N; ++r) {
    const float* row = x + r * C;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < C; ++i) sum += row[i];
    const float mean = sum / C;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < C; ++i) squares += (row[i] - mean) * (row[i] - mean);
    const float scale = 1 / std::sqrt(squares / C + 1e-5f);
#pragma omp simd
    for (int i = 0; i < C; ++i) out[r * C + i] = scale * (row[i] - mean) * weight[i] + bias[i];
    means[r] = mean, scales[r] = scale;
  }
}
void norm_backward(float* __restrict dx, float* __restrict dweight, float* __restrict dbias, const float* __restrict dout, const float* __restrict x, const float* __restrict weight, const float* __restrict means, const float* __restrict scales, int N, int C) {
#pragma omp parallel for reduction(+ : dweight[:C], dbias[:C])
  for (int r = 0; r < N; ++r) {
    const float *d_row = dout + r * C, *row = x + r * C;
    const float mean = means[r], scale = scales[r];
    float first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
    for (int i = 0; i < C; ++i) {
      const float norm = (row[i] - mean) * scale, d = weight[i] * d_row[i];
      first += d, second += d * norm;
    }
    first /= C, second /= C;
#pragma omp simd
    for (int i = 0; i < C; ++i) {
      const float norm = (row[i] - mean) * scale, d = weight[i] * d_row[i];
      dbias[i] += d_row[i];
      dweight[i] += norm * d_row[i];
      dx[r * C + i] += (d - first - norm * second) * scale;
    }
  }
}
void softmax_naive(float* __restrict out, const float* __restrict x, int N, int C) {
#pragma omp parallel for
  for (int r = 0; r < N; ++r) {
    const float* row = x + r * C;
    float* o = out + r * C;
    float most = -INFINITY;
    double sum = 0;
#pragma omp simd reduction(max : most)
    for (int i = 0; i < C; ++i) most = row[i] > most ? row[i] : most;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < C; ++i) { o[i] = expf(row[i] - most); sum += o[i]; }
#pragma omp simd
    for (int i = 0; i < C; ++i) o[i] /= (float)sum;
  }
}
void softmax_online(float* __restrict out, float scale, const float* __restrict x, int N, int T) {
#pragma omp parallel for schedule(dynamic, 64)
  for (int r = 0; r < N * T; ++r) {
    const float* row = x + r * T;
    float* o = out + r * T;
    const int count = r % T + 1;
    float most = -INFINITY, sum = 0;
#pragma omp simd reduction(max : most)
    for (int i = 0; i < count; ++i) most = row[i] > most ? row[i] : most;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < count; ++i) { o[i] = expf(scale * (row[i] - most)); sum += o[i]; }
    const float norm = 1 / sum;
#pragma omp simd
    for (int i = 0; i < count; ++i) o[i] *= norm;
  }
}
void attend_values(float* __restrict out, const float* __restrict weights, const float* __restrict qkv, int B, int T, int C, int NH) {
  const int hs = C / NH;
#pragma omp parallel for collapse(3)
  for (int b = 0; b < B; ++b) for (int t = 0; t < T; ++t) for (int h = 0; h < NH; ++h) {
    float* o = out + (b * T + t) * C + h * hs;
    const float* a = weights + ((b * NH + h) * T + t) * T;
#pragma omp simd
    for (int j = 0; j < hs; ++j) o[j] = 0;
    for (int u = 0; u <= t; ++u) {
      const float* v = qkv + (b * T + u) * C * 3 + h * hs + C * 2;
#pragma omp simd
      for (int j = 0; j < hs; ++j) o[j] += a[u] * v[j];
    }
  }
}
void split_heads(float* __restrict q, float* __restrict k, float* __restrict v, const float* __restrict x, int B, int N, int NH, int d) {
#pragma omp parallel for collapse(3)
  for (int b = 0; b < B; ++b) for (int h = 0; h < NH; ++h) for (int n = 0; n < N; ++n) {
    const float* from = x + ((b * N + n) * 3 * NH + h) * d;
    const int to = ((b * NH + h) * N + n) * d;
#pragma omp simd
    for (int j = 0; j < d; ++j) q[to + j] = from[j], k[to + j] = from[NH * d + j], v[to + j] = from[2 * NH * d + j];
  }
}
void gelu_forward(float* __restrict out, const float* __restrict x, int N) {
#pragma omp parallel for simd
  for (int i = 0; i < N; ++i) {
    const float v = x[i];
    out[i] = 0.5f * v * (1 + tanhf(0.797884561f * (v + 0.044715f * v * v * v)));
  }
}
void gelu_backward(float* __restrict dx, const float* __restrict x, const float* __restrict dout, int N) {
#pragma omp parallel for simd
  for (int i = 0; i < N; ++i) {
    const float v = x[i], factor = 0.797884561f, argument = factor * (v + 0.044715f * v * v * v), t = tanhf(argument), c = coshf(argument);
    dx[i] = (0.5f * (1 + t) + v * 0.5f / (c * c) * factor * (1 + 3 * 0.044715f * v * v)) * dout[i];
  }
}
void residual(float* __restrict out, const float* __restrict a, const float* __restrict b, int N) {
#pragma omp parallel for simd
  for (int i = 0; i < N; ++i) out[i] = a[i] + b[i];
}
void losses_of(float* __restrict losses, const float* __restrict probs, const int* __restrict targets, int B, int T, int V) {
#pragma omp parallel for simd
  for (int i = 0; i < B * T; ++i) losses[i] = -logf(probs[i * V + targets[i]]);
}
void logits_backward(float* __restrict dlogits, const float* __restrict dlosses, const float* __restrict probs, const int* __restrict targets, int B, int T, int V) {
#pragma omp parallel for
  for (int i = 0; i < B * T; ++i) {
    const float d = dlosses[i];
    const int target = targets[i];
#pragma omp simd
    for (int v = 0; v < V; ++v) dlogits[i * V + v] += (probs[i * V + v] - (v == target ? 1.f : 0.f)) * d;
  }
}
void linear_forward(float* __restrict out, const float* __restrict x, const float* __restrict weight, const float* __restrict bias, int BT, int C, int OC) {
#pragma omp parallel for
  for (int r = 0; r < BT; ++r)
    for (int o = 0; o < OC; ++o) {
      float sum = bias[o];
#pragma omp simd reduction(+ : sum)
      for (int i = 0; i < C; ++i) sum += x[r * C + i] * weight[o * C + i];
      out[r * OC + o] = sum;
    }
}
void bias_backward(float* __restrict dbias, const float* __restrict dout, int BT, int OC) {
#pragma omp parallel for reduction(+ : dbias[:OC])
  for (int r = 0; r < BT; ++r)
#pragma omp simd
    for (int o = 0; o < OC; ++o) dbias[o] += dout[r * OC + o];
}
void adamw(float* __restrict params, const float* __restrict grads, float* __restrict m, float* __restrict v, long n, float rate, float beta1, float beta2, float fix1, float fix2, float eps, float decay) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) {
    const float g = grads[i];
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    params[i] -= rate * (m[i] / fix1 / (std::sqrt(v[i] / fix2) + eps) + decay * params[i]);
  }
}
void squares_sum(float* __restrict out, const float* __restrict data, long count) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (long i = 0; i < count; ++i) sum += data[i] * data[i];
  *out = sum;
}
void reduce_groups(const float* __restrict x, float* __restrict out, int n) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += x[i];
  *out = sum;
}
void scan_blocks(const float* __restrict x, float* __restrict y, int n) {
#pragma omp parallel for
  for (int b = 0; b < n / 256; ++b) {
    float sum = 0;
    for (int i = 0; i < 256; ++i) y[b * 256 + i] = sum += x[b * 256 + i];
  }
}
void transpose_naive(const float* __restrict in, float* __restrict out, int W, int H) {
#pragma omp parallel for collapse(2)
  for (int y = 0; y < H; y += 16)
    for (int x = 0; x < W; x += 16)
      for (int i = x; i < std::min(x + 16, W); ++i)
#pragma omp simd
        for (int j = y; j < std::min(y + 16, H); ++j) out[i * H + j] = in[j * W + i];
}
void bitonic_step(float* __restrict s, int j, int k, int n) {
#pragma omp parallel for
  for (int first = 0; first < n; first += 2 * j) {
    const bool up = (first & k) == 0;
#pragma omp simd
    for (int i = first; i < first + j; ++i) {
      const float a = s[i], b = s[i + j], low = a < b ? a : b, high = a < b ? b : a;
      s[i] = up ? low : high;
      s[i + j] = up ? high : low;
    }
  }
}
void spmv_rows(const int* __restrict start, const int* __restrict column, const float* __restrict value, const float* __restrict x, float* __restrict y, int rows) {
#pragma omp parallel for
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = start[r]; i < start[r + 1]; ++i) sum += value[i] * x[column[i]];
    y[r] = sum;
  }
}
void nbody_naive(const float* __restrict body, float* __restrict force, int n, float soft) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
    const float x = body[4 * i], y = body[4 * i + 1], z = body[4 * i + 2];
    float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
    for (int j = 0; j < n; ++j) {
      const float dx = body[4 * j] - x, dy = body[4 * j + 1] - y, dz = body[4 * j + 2] - z;
      const float r = 1 / std::sqrt(dx * dx + dy * dy + dz * dz + soft), s = body[4 * j + 3] * r * r * r;
      ax += dx * s, ay += dy * s, az += dz * s;
    }
    force[3 * i] = ax, force[3 * i + 1] = ay, force[3 * i + 2] = az;
  }
}
void stencil_sheets(const float* __restrict in, float* __restrict out, int W, int H, int D) {
  const int sheet = W * H;
#pragma omp parallel for collapse(2)
  for (int z = 1; z < D - 1; ++z) for (int y = 1; y < H - 1; ++y) {
    const int at = z * sheet + y * W;
#pragma omp simd
    for (int x = 1; x < W - 1; ++x)
      out[at + x] = 0.4f * in[at + x] + 0.1f * (in[at + x - 1] + in[at + x + 1] + in[at + x - W] + in[at + x + W] + in[at + x - sheet] + in[at + x + sheet]);
  }
}
}
