// The kernels of speed.py, as CUDA programs have them.
#define TILE 16
__global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float acc = 0.f;
  for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
    As[ty][tx] = (row < M && t * TILE + tx < K) ? A[row * K + t * TILE + tx] : 0.f;
    Bs[ty][tx] = (col < N && t * TILE + ty < K) ? B[(t * TILE + ty) * N + col] : 0.f;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) acc += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = acc;
}
__global__ void stencil(const float* __restrict__ in, float* __restrict__ out, int W, int H) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= W - 1 || y >= H - 1) return;
  out[y * W + x] = 0.25f * (in[y * W + x - 1] + in[y * W + x + 1] + in[(y - 1) * W + x] + in[(y + 1) * W + x]);
}
__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float sm[256];
  const float* row = x + blockIdx.x * cols;
  int t = threadIdx.x;
  float m = -INFINITY;
  for (int i = t; i < cols; i += blockDim.x) m = fmaxf(m, row[i]);
  sm[t] = m;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) sm[t] = fmaxf(sm[t], sm[t + s]);
    __syncthreads();
  }
  m = sm[0];
  __syncthreads();
  float d = 0.f;
  for (int i = t; i < cols; i += blockDim.x) {
    float e = __expf(row[i] - m);
    y[blockIdx.x * cols + i] = e;
    d += e;
  }
  sm[t] = d;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s) sm[t] += sm[t + s];
    __syncthreads();
  }
  d = 1.f / sm[0];
  for (int i = t; i < cols; i += blockDim.x) y[blockIdx.x * cols + i] *= d;
}
__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__global__ void reduce(const float* __restrict__ x, float* out, int n) {
  __shared__ float s[32];
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
  v = warp_sum(v);
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  if (lane == 0) s[w] = v;
  __syncthreads();
  if (w == 0) {
    v = (lane < blockDim.x / 32) ? s[lane] : 0.f;
    v = warp_sum(v);
    if (lane == 0) atomicAdd(out, v);
  }
}
__global__ void histogram(const unsigned char* __restrict__ data, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

__device__ __forceinline__ float warp_sum_all(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
__device__ __forceinline__ float warp_max_all(float v) {
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  return v;
}
__device__ __forceinline__ float block_sum(float v, float* s) {
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  v = warp_sum_all(v);
  if (lane == 0) s[w] = v;
  __syncthreads();
  v = warp_sum_all(lane < blockDim.x / 32 ? s[lane] : 0.f);
  __syncthreads();
  return v;
}
__device__ __forceinline__ float block_max(float v, float* s) {
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  v = warp_max_all(v);
  if (lane == 0) s[w] = v;
  __syncthreads();
  v = warp_max_all(lane < blockDim.x / 32 ? s[lane] : -INFINITY);
  __syncthreads();
  return v;
}
// a block for each row
__global__ void layernorm(const float* __restrict__ x, const float* __restrict__ gain, const float* __restrict__ bias, float* __restrict__ y, int cols, float eps) {
  __shared__ float s[32];
  const float* row = x + blockIdx.x * cols;
  float sum = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += row[i];
  float mean = block_sum(sum, s) / cols;
  float squares = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    float d = row[i] - mean;
    squares += d * d;
  }
  float scale = rsqrtf(block_sum(squares, s) / cols + eps);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[blockIdx.x * cols + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}
// a warp for each row
__global__ void rmsnorm(const float* __restrict__ x, const float* __restrict__ gain, float* __restrict__ y, int rows, int cols, float eps) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float squares = 0.f;
  for (int i = lane; i < cols; i += 32) squares += x[row * cols + i] * x[row * cols + i];
  float scale = rsqrtf(warp_sum_all(squares) / cols + eps);
  for (int i = lane; i < cols; i += 32) y[row * cols + i] = x[row * cols + i] * scale * gain[i];
}
// y[b] = A[b] x[b]: a warp for each row
__global__ void matvec(const float* __restrict__ A, const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32, batch = blockIdx.y;
  if (row >= rows) return;
  const float* a = A + (batch * rows + row) * cols;
  const float* v = x + batch * cols;
  float sum = 0.f;
  for (int i = lane; i < cols; i += 32) sum += a[i] * v[i];
  sum = warp_sum_all(sum);
  if (lane == 0) y[batch * rows + row] = sum;
}
// exclusive sums of 512 numbers in each block of 256 threads, up and down a tree
__global__ void scan(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float s[512];
  int t = threadIdx.x, base = blockIdx.x * 512;
  s[2 * t] = x[base + 2 * t];
  s[2 * t + 1] = x[base + 2 * t + 1];
  int step = 1;
  for (int d = 256; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
    step *= 2;
  }
  if (t == 0) s[511] = 0.f;
  for (int d = 1; d < 512; d *= 2) {
    step >>= 1;
    __syncthreads();
    if (t < d) {
      float left = s[step * (2 * t + 1) - 1];
      s[step * (2 * t + 1) - 1] = s[step * (2 * t + 2) - 1];
      s[step * (2 * t + 2) - 1] += left;
    }
  }
  __syncthreads();
  y[base + 2 * t] = s[2 * t];
  y[base + 2 * t + 1] = s[2 * t + 1];
}
// 3x3, zeros outside
__global__ void conv3x3(const float* __restrict__ in, const float* __restrict__ weight, float* __restrict__ out, int W, int H) {
  __shared__ float tile[10][34];
  int left = blockIdx.x * 32 - 1, top = blockIdx.y * 8 - 1;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < 10 * 34; i += 256) {
    int x = left + i % 34, y = top + i / 34;
    tile[i / 34][i % 34] = (x >= 0 && x < W && y >= 0 && y < H) ? in[y * W + x] : 0.f;
  }
  __syncthreads();
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x >= W || y >= H) return;
  float sum = 0.f;
  for (int dy = 0; dy < 3; ++dy)
    for (int dx = 0; dx < 3; ++dx) sum += weight[dy * 3 + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
  out[y * W + x] = sum;
}
// position and mass in, acceleration out
__global__ void nbody(const float4* __restrict__ body, float4* __restrict__ force, int n, float soft) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = body[i];
  float ax = 0.f, ay = 0.f, az = 0.f;
  for (int start = 0; start < n; start += 256) {
    tile[threadIdx.x] = body[start + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 256; ++j) {
      float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + soft);
      float s = tile[j].w * r * r * r;
      ax += dx * s;
      ay += dy * s;
      az += dz * s;
    }
    __syncthreads();
  }
  force[i] = make_float4(ax, ay, az, 0.f);
}
__device__ __forceinline__ float normal_share(float d) { return 0.5f * erfcf(-0.70710678f * d); }
__global__ void blackscholes(const float* __restrict__ price, const float* __restrict__ strike, const float* __restrict__ years, float* __restrict__ call, float* __restrict__ put, float rate, float spread, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = price[i], k = strike[i], t = years[i];
  float root = spread * sqrtf(t);
  float d1 = (logf(s / k) + (rate + 0.5f * spread * spread) * t) / root, d2 = d1 - root;
  float later = k * expf(-rate * t);
  call[i] = s * normal_share(d1) - later * normal_share(d2);
  put[i] = later * normal_share(-d2) - s * normal_share(-d1);
}
// rows of a table by number, a block for each
__global__ void gather(const int* __restrict__ number, const float* __restrict__ table, float* __restrict__ out, int cols) {
  int from = number[blockIdx.x];
  for (int i = threadIdx.x; i < cols; i += blockDim.x) out[blockIdx.x * cols + i] = table[from * cols + i];
}
__global__ void maxpool(const float* __restrict__ in, float* __restrict__ out, int W, int H) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= W / 2 || y >= H / 2) return;
  const float* p = in + blockIdx.z * W * H + 2 * y * W + 2 * x;
  out[blockIdx.z * (W / 2) * (H / 2) + y * (W / 2) + x] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[W], p[W + 1]));
}
__global__ void gelu_bias(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ y, int n, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i] + bias[i % cols];
    y[i] = 0.5f * v * (1.f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
  }
}
__global__ void cross_entropy(const float* __restrict__ x, const int* __restrict__ label, float* __restrict__ loss, int cols) {
  __shared__ float s[32];
  const float* row = x + blockIdx.x * cols;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) most = fmaxf(most, row[i]);
  most = block_max(most, s);
  float sum = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += expf(row[i] - most);
  sum = block_sum(sum, s);
  if (threadIdx.x == 0) loss[blockIdx.x] = logf(sum) + most - row[label[blockIdx.x]];
}
// compressed rows, a warp for each
__global__ void spmv(const int* __restrict__ start, const int* __restrict__ column, const float* __restrict__ value, const float* __restrict__ x, float* __restrict__ y, int rows) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.f;
  for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += value[i] * x[column[i]];
  sum = warp_sum_all(sum);
  if (lane == 0) y[row] = sum;
}
// sorts 512 numbers in each block
__global__ void bitonic(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float s[512];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * 512 + t];
  __syncthreads();
  for (int k = 2; k <= 512; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      int other = t ^ j;
      if (other > t) {
        float a = s[t], b = s[other];
        if ((a > b) == ((t & k) == 0)) {
          s[t] = b;
          s[other] = a;
        }
      }
      __syncthreads();
    }
  y[blockIdx.x * 512 + t] = s[t];
}
__global__ void dot(const float* __restrict__ x, const float* __restrict__ y, float* out, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  float sum = 0.f;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) sum += x[i] * y[i];
  s[t] = sum;
  __syncthreads();
  for (int step = 128; step > 0; step >>= 1) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, s[0]);
}
