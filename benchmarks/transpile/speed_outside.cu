// Kernels of kinds that many repositories have, written before the compiler was tried on any of them.
// channels by images by pixels into columns for a product: a thread each number of the output
__global__ void im2col(const float* image, float* columns, int n, int H, int W, int K, int OH, int OW) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int ow = i % OW, oh = (i / OW) % OH, kw = (i / OW / OH) % K, kh = (i / OW / OH / K) % K, c = i / OW / OH / K / K;
  const int h = oh + kh - K / 2, w = ow + kw - K / 2;
  columns[i] = h >= 0 && h < H && w >= 0 && w < W ? image[(c * H + h) * W + w] : 0.f;
}
// half a step of Gauss and Seidel: cells of one colour
__global__ void red_black(float* u, const float* f, int W, int H, int colour) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && y > 0 && x < W - 1 && y < H - 1 && (x + y) % 2 == colour)
    u[y * W + x] = 0.25f * (u[y * W + x - 1] + u[y * W + x + 1] + u[(y - 1) * W + x] + u[(y + 1) * W + x] - f[y * W + x]);
}
// a moving average: a thread a row
__global__ void ema(const float* x, float* y, int rows, int cols, float decay) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float state = 0.f;
  for (int c = 0; c < cols; ++c) {
    state = decay * state + (1.f - decay) * x[r * cols + c];
    y[r * cols + c] = state;
  }
}
// where each row is largest: a thread a row
__global__ void argmax_rows(const float* x, int* best, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float most = x[r * cols];
  int at = 0;
  for (int c = 1; c < cols; ++c)
    if (x[r * cols + c] > most) {
      most = x[r * cols + c];
      at = c;
    }
  best[r] = at;
}
// compressed rows times a matrix: a row of threads a row
__global__ void spmm(const int* start, const int* column, const float* value, const float* B, float* C, int rows, int width) {
  const int r = blockIdx.x * blockDim.y + threadIdx.y, c = blockIdx.y * blockDim.x + threadIdx.x;
  if (r >= rows || c >= width) return;
  float sum = 0.f;
  for (int i = start[r]; i < start[r + 1]; ++i) sum += value[i] * B[column[i] * width + c];
  C[r * width + c] = sum;
}
// bilinear, corners not aligned: a thread each pixel of the output
__global__ void resize(const float* in, float* out, int n, int H, int W, int OH, int OW, float sh, float sw) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int ow = i % OW, oh = (i / OW) % OH, c = i / (OW * OH);
  const float fh = fmaxf((oh + 0.5f) * sh - 0.5f, 0.f), fw = fmaxf((ow + 0.5f) * sw - 0.5f, 0.f);
  const int h0 = (int)fh, w0 = (int)fw, h1 = h0 < H - 1 ? h0 + 1 : h0, w1 = w0 < W - 1 ? w0 + 1 : w0;
  const float ah = fh - h0, aw = fw - w0;
  const float* p = in + c * H * W;
  const float top = p[h0 * W + w0] * (1.f - aw) + p[h0 * W + w1] * aw, low = p[h1 * W + w0] * (1.f - aw) + p[h1 * W + w1] * aw;
  out[i] = top * (1.f - ah) + low * ah;
}
// rows to bytes by their largest absolute value: a block a row
__global__ void quantise_rows(const float* x, signed char* q, float* scales, int cols) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  const float* row = x + blockIdx.x * cols;
  float most = 0.f;
  for (int i = t; i < cols; i += blockDim.x) most = fmaxf(most, fabsf(row[i]));
  s[t] = most;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) {
    if (t < d) s[t] = fmaxf(s[t], s[t + d]);
    __syncthreads();
  }
  const float scale = s[0] / 127.f, inverse = scale > 0.f ? 1.f / scale : 0.f;
  if (t == 0) scales[blockIdx.x] = scale;
  for (int i = t; i < cols; i += blockDim.x) q[blockIdx.x * cols + i] = (signed char)fminf(fmaxf(rintf(row[i] * inverse), -127.f), 127.f);
}
// running sums: a thread a row
__global__ void cumsum_rows(const float* x, float* y, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float sum = 0.f;
    for (int c = 0; c < cols; ++c) {
      sum += x[r * cols + c];
      y[r * cols + c] = sum;
    }
  }
}
// the best of a few experts for each token, and its share: a thread a token
__global__ void route(const float* logits, int* expert, float* gate, int tokens, int E) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= tokens) return;
  const float* l = logits + t * E;
  int at = 0;
  float most = l[0];
  for (int e = 1; e < E; ++e)
    if (l[e] > most) {
      most = l[e];
      at = e;
    }
  float sum = 0.f;
  for (int e = 0; e < E; ++e) sum += expf(l[e] - most);
  expert[t] = at;
  gate[t] = 1.f / sum;
}
// gradients of a norm's weights: a block 32 columns
__global__ void weight_gradients(const float* dout, const float* x, const float* means, const float* scales, float* dweight, float* dbias, int rows, int cols) {
  __shared__ float sw[8][33], sb[8][33];
  const int c = blockIdx.x * 32 + threadIdx.x;
  float w = 0.f, b = 0.f;
  for (int r = threadIdx.y; r < rows; r += 8) {
    const float d = dout[r * cols + c];
    w += d * (x[r * cols + c] - means[r]) * scales[r];
    b += d;
  }
  sw[threadIdx.y][threadIdx.x] = w;
  sb[threadIdx.y][threadIdx.x] = b;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int i = 1; i < 8; ++i) {
      w += sw[i][threadIdx.x];
      b += sb[i][threadIdx.x];
    }
    dweight[c] = w;
    dbias[c] = b;
  }
}
