// Kernels in the forms that courses and libraries give them: tiles with borders in shared memory, trees, histograms, attention.
__global__ void stencil_shared(const float* in, float* out, int W, int H) {
  __shared__ float s[18][18];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  if (x < W && y < H) {
    s[ty][tx] = in[y * W + x];
    if (threadIdx.x == 0 && x > 0) s[ty][0] = in[y * W + x - 1];
    if (threadIdx.x == 15 && x < W - 1) s[ty][17] = in[y * W + x + 1];
    if (threadIdx.y == 0 && y > 0) s[0][tx] = in[(y - 1) * W + x];
    if (threadIdx.y == 15 && y < H - 1) s[17][tx] = in[(y + 1) * W + x];
  }
  __syncthreads();
  if (x > 0 && y > 0 && x < W - 1 && y < H - 1) out[y * W + x] = 0.25f * (s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx]);
}
#define RADIUS 4
__global__ void stencil_row(const float* in, float* out, int n) {
  __shared__ float s[256 + 2 * RADIUS];
  const int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + RADIUS;
  s[l] = g < n ? in[g] : 0.f;
  if (threadIdx.x < RADIUS) {
    s[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0.f;
    s[l + 256] = g + 256 < n ? in[g + 256] : 0.f;
  }
  __syncthreads();
  float sum = 0;
  for (int i = -RADIUS; i <= RADIUS; ++i) sum += s[l + i];
  if (g < n) out[g] = sum;
}
__global__ void tree_modulo(const float* x, float* out) {
  __shared__ float s[256];
  const unsigned t = threadIdx.x;
  s[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned d = 1; d < blockDim.x; d *= 2) {
    if (t % (2 * d) == 0) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void tree_index(const float* x, float* out) {
  __shared__ float s[256];
  const unsigned t = threadIdx.x;
  s[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned d = 1; d < blockDim.x; d *= 2) {
    const int at = 2 * d * t;
    if (at < blockDim.x) s[at] += s[at + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void tree_halving(const float* x, float* out) {
  __shared__ float s[256];
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
  s[t] = x[i] + x[i + blockDim.x];
  __syncthreads();
  for (unsigned d = blockDim.x / 2; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__global__ void histogram_global(const unsigned char* data, unsigned* bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1);
}
// attention in tiles with a running maximum: a block has one head, a thread one row of a tile of 32 queries
__global__ void flash(const float* Q, const float* K, const float* V, int N, int d, float scale, float* l, float* m, float* O) {
  extern __shared__ float all[];
  const int t = threadIdx.x, tile = 32 * d, head = blockIdx.x * N * d, row = blockIdx.x * N;
  float *q = all, *k = all + tile, *v = all + 2 * tile, *S = all + 3 * tile;
  for (int j = 0; j < N / 32; ++j) {
    for (int x = 0; x < d; ++x) {
      k[t * d + x] = K[head + tile * j + t * d + x];
      v[t * d + x] = V[head + tile * j + t * d + x];
    }
    __syncthreads();
    for (int i = 0; i < N / 32; ++i) {
      for (int x = 0; x < d; ++x) q[t * d + x] = Q[head + tile * i + t * d + x];
      const float old_m = m[row + 32 * i + t], old_l = l[row + 32 * i + t];
      float row_m = -INFINITY, row_l = 0;
      for (int y = 0; y < 32; ++y) {
        float sum = 0;
        for (int x = 0; x < d; ++x) sum += q[t * d + x] * k[y * d + x];
        sum *= scale;
        S[32 * t + y] = sum;
        if (sum > row_m) row_m = sum;
      }
      for (int y = 0; y < 32; ++y) {
        S[32 * t + y] = __expf(S[32 * t + y] - row_m);
        row_l += S[32 * t + y];
      }
      const float new_m = max(old_m, row_m), new_l = __expf(old_m - new_m) * old_l + __expf(row_m - new_m) * row_l;
      for (int x = 0; x < d; ++x) {
        float pv = 0;
        for (int y = 0; y < 32; ++y) pv += S[32 * t + y] * v[y * d + x];
        O[head + tile * i + t * d + x] = (1 / new_l) * (old_l * __expf(old_m - new_m) * O[head + tile * i + t * d + x] + __expf(row_m - new_m) * pv);
      }
      m[row + 32 * i + t] = new_m;
      l[row + 32 * i + t] = new_l;
    }
    __syncthreads();
  }
}
__global__ void scores(const float* q, const float* k, float* out, int T, int d, float scale) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, head = i / (T * T), row = i / T % T, col = i % T;
  if (col > row) {
    out[i] = -1e9f;
    return;
  }
  float sum = 0;
  for (int x = 0; x < d; ++x) sum += q[(head * T + row) * d + x] * k[(head * T + col) * d + x];
  out[i] = sum * scale;
}
__global__ void layernorm_shared(const float* x, const float* gain, const float* bias, float* y, int cols) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  const float* row = x + blockIdx.x * cols;
  float sum = 0;
  for (int i = t; i < cols; i += blockDim.x) sum += row[i];
  s[t] = sum;
  __syncthreads();
  for (int d = blockDim.x / 2; d >= 1; d /= 2) {
    __syncthreads();
    if (t < d) s[t] += s[t + d];
  }
  __syncthreads();
  const float mean = s[0] / cols;
  __syncthreads();
  sum = 0;
  for (int i = t; i < cols; i += blockDim.x) {
    const float diff = row[i] - mean;
    sum += diff * diff;
  }
  s[t] = sum;
  __syncthreads();
  for (int d = blockDim.x / 2; d >= 1; d /= 2) {
    __syncthreads();
    if (t < d) s[t] += s[t + d];
  }
  __syncthreads();
  const float scale = rsqrtf(s[0] / cols + 1e-5f);
  for (int i = t; i < cols; i += blockDim.x) y[blockIdx.x * cols + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}
__global__ void sobel(const unsigned char* in, unsigned char* out, int W, int H) {
  __shared__ unsigned char s[18][34];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  for (int j = threadIdx.y; j < 18; j += 16)
    for (int i = threadIdx.x; i < 34; i += 32) {
      const int gx = min(max((int)blockIdx.x * 32 + i - 1, 0), W - 1), gy = min(max((int)blockIdx.y * 16 + j - 1, 0), H - 1);
      s[j][i] = in[gy * W + gx];
    }
  __syncthreads();
  if (x >= W || y >= H) return;
  const int c = threadIdx.x + 1, r = threadIdx.y + 1;
  const int dx = s[r - 1][c + 1] + 2 * s[r][c + 1] + s[r + 1][c + 1] - s[r - 1][c - 1] - 2 * s[r][c - 1] - s[r + 1][c - 1];
  const int dy = s[r + 1][c - 1] + 2 * s[r + 1][c] + s[r + 1][c + 1] - s[r - 1][c - 1] - 2 * s[r - 1][c] - s[r - 1][c + 1];
  out[y * W + x] = (unsigned char)min(abs(dx) + abs(dy), 255);
}
__constant__ float taps[17] = {.01f, .02f, .03f, .04f, .06f, .08f, .09f, .1f, .14f, .1f, .09f, .08f, .06f, .04f, .03f, .02f, .01f};
__global__ void filter_rows(const float* in, float* out, int W, int H) {
  __shared__ float s[4][64 + 2 * 8 + 1];
  const int y = blockIdx.y * 4 + threadIdx.y, first = blockIdx.x * 64 - 8;
  for (int i = threadIdx.x; i < 64 + 16; i += blockDim.x) {
    const int x = first + i;
    s[threadIdx.y][i] = x >= 0 && x < W ? in[y * W + x] : 0.f;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int j = -8; j <= 8; ++j) sum += taps[8 - j] * s[threadIdx.y][threadIdx.x + 8 + j];
  out[y * W + blockIdx.x * 64 + threadIdx.x] = sum;
}
__global__ void nearest(const float* points, const float* centres, int* best, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int at = 0;
  float least = 3.4e38f;
  for (int c = 0; c < k; ++c) {
    float distance = 0;
    for (int f = 0; f < 8; ++f) {
      const float d = points[f * n + i] - centres[c * 8 + f];
      distance += d * d;
    }
    if (distance < least) {
      least = distance;
      at = c;
    }
  }
  best[i] = at;
}
__global__ void life(const int* in, int* out, int W, int H) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= W || y >= H) return;
  const int left = (x + W - 1) % W, right = (x + 1) % W, up = (y + H - 1) % H, down = (y + 1) % H;
  const int n = in[up * W + left] + in[up * W + x] + in[up * W + right] + in[y * W + left] + in[y * W + right] + in[down * W + left] +
                in[down * W + x] + in[down * W + right];
  out[y * W + x] = n == 3 || (n == 2 && in[y * W + x]);
}
__global__ void relu4(const float* x, float* y, int n) {
  const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    float4 v = reinterpret_cast<const float4*>(&x[i])[0];
    v.x = fmaxf(0.f, v.x), v.y = fmaxf(0.f, v.y), v.z = fmaxf(0.f, v.z), v.w = fmaxf(0.f, v.w);
    reinterpret_cast<float4*>(&y[i])[0] = v;
  }
}
__global__ void rope(const float* x, const float* angle, float* y, int n, int half) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float2 v = reinterpret_cast<const float2*>(x)[i];
  const float a = angle[i % half], s = sinf(a), c = cosf(a);
  reinterpret_cast<float2*>(y)[i] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}
__global__ void collatz(int* out, int n, int most) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned value = i + 1;
  int steps = 0;
  while (steps < most && value != 1) {
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    ++steps;
  }
  out[i] = steps;
}
__global__ void row_products(const float* A, const float* x, float* y, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int c = 0; c < cols; ++c) sum += A[r * cols + c] * x[c];
  y[r] = sum;
}
