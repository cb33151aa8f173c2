// Kernels without a bug, of 2 blocks of 64 threads on n = 100 values; T is float, int or double.
// `//~ KIND | OLD | NEW` plants a bug: in its line, OLD becomes NEW. The finding belongs to this line, or to lines with `//@ KIND` of the same kernel.
__global__ void reversed(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;  //~ missing guard | i < n ? x[i] : 0 | x[i]  //@ missing barrier
  __syncthreads();  //~ missing barrier | __syncthreads(); |   //~ divergent barrier | __syncthreads(); | if (t < 40) __syncthreads();
  T v = s[63 - t];  //@ missing barrier  //~ off by one | 63 | 64
  if (i < n) y[i] = v;  //~ missing guard | if (i < n) |   //~ negative index | y[i] | y[i - 1]  //~ missing block offset | y[i] | y[t]
}
__global__ void tree(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;  //~ uninitialised | s[t] = | if (t != 9) s[t] =  //~ missing guard | i < n ? x[i] : 0 | x[i]
  __syncthreads();
  for (int d = 32; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];  //@ missing barrier  //@ uninitialised  //~ off by one | s[t + d] | s[t + d + 1]
    __syncthreads();  //~ missing barrier | __syncthreads(); |   //~ divergent barrier | __syncthreads(); | if (t < d) __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];  //~ missing block offset | y[blockIdx.x] | y[0]  //~ negative index | y[blockIdx.x] | y[(int)blockIdx.x - 1]
}
__global__ void stencil(T* x, T* y, int n) {
  __shared__ T s[66];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t + 1] = i < n ? x[i] : 0;  //@ missing barrier
  if (t == 0) s[0] = i > 0 ? x[i - 1] : 0;  //~ negative index | i > 0 ? x[i - 1] : 0 | x[i - 1]  //~ uninitialised | if (t == 0) | if (t == 0 && i > 0)
  if (t == 63) s[65] = i + 1 < n ? x[i + 1] : 0;  //~ missing guard | i + 1 < n ? x[i + 1] : 0 | x[i + 1]  //~ off by one | s[65] | s[66]
  __syncthreads();  //~ missing barrier | __syncthreads(); |   //~ divergent barrier | __syncthreads(); | if (i < n) __syncthreads();
  if (i < n) y[i] = s[t] + s[t + 1] + s[t + 2];  //@ missing barrier  //@ uninitialised  //~ missing block offset | y[i] | y[t]
}
__global__ void histogram(T* x, T* y, int n) {
  __shared__ int bins[8];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t < 8) bins[t] = 0;  //~ uninitialised | t < 8 | t < 7  //@ missing barrier
  __syncthreads();  //~ missing barrier | __syncthreads(); | 
  if (i < n) atomicAdd(&bins[(int)x[i] & 7], 1);  //~ missing atomic | atomicAdd(&bins[(int)x[i] & 7], 1) | bins[(int)x[i] & 7] += 1  //@ missing barrier  //@ uninitialised  //~ off by one | & 7 | & 8
  __syncthreads();  //~ divergent barrier | __syncthreads(); | if (i < n) __syncthreads();
  if (t < 8) y[blockIdx.x * 8 + t] = bins[t];  //~ missing block offset | blockIdx.x * 8 + t | t
}
__global__ void ring(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  T v = i < n ? x[i] : 0;
  for (int k = 0; k < 4; ++k) {
    s[t] = v;  //@ missing second barrier
    __syncthreads();
    v = s[(t + 1) % 64];  //@ missing second barrier  //~ negative index | (t + 1) % 64 | t - 1
    __syncthreads();  //~ missing second barrier | __syncthreads(); |   //~ divergent barrier | __syncthreads(); | if (t != k) __syncthreads();
  }
  if (i < n) y[i] = v;  //~ missing guard | if (i < n) | 
}
__global__ void lanes(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;  //@ missing syncwarp
  __syncwarp();  //~ missing syncwarp | __syncwarp(); | 
  T v = s[t ^ 1];  //@ missing syncwarp  //~ off by one | t ^ 1 | t + 1
  __syncwarp();
  s[t] = v * 2;
  __syncwarp();
  if (i < n) y[i] = s[t];  //~ missing block offset | y[i] | y[t]
}
__global__ void warp_tree(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;  //~ uninitialised | s[t] = | if (lane != 31) s[t] =
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    T v = lane < d ? s[t + d] : 0;  //@ missing syncwarp  //@ uninitialised
    __syncwarp();
    if (lane < d) s[t] += v;  //@ missing syncwarp
    __syncwarp();  //~ missing syncwarp | __syncwarp(); | 
  }
  if (lane == 0) y[blockIdx.x * 2 + t / 32] = s[t];  //~ negative index | y[blockIdx.x * 2 + t / 32] | y[(int)blockIdx.x * 2 + t / 32 - 1]
}
__global__ void transposed(T* x, T* y, int n) {
  __shared__ T s[8][9];
  int t = threadIdx.x, r = t / 8, c = t % 8, i = blockIdx.x * 64 + t;
  s[r][c] = i < n ? x[i] : 0;  //@ missing barrier  //~ uninitialised | s[r][c] = | if (r != c) s[r][c] =
  __syncthreads();  //~ missing barrier | __syncthreads(); | 
  T v = s[c][r];  //@ missing barrier  //@ uninitialised  //~ off by one | s[c][r] | s[c + 1][r]
  if (i < n) y[i] = v;  //~ negative index | y[i] | y[i - 1]
}
__global__ void scan(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    T v = t >= d ? s[t - d] : 0;  //~ negative index | t >= d ? s[t - d] : 0 | s[t - d]  //@ missing second barrier
    __syncthreads();  //~ missing second barrier | __syncthreads(); |   //~ divergent barrier | __syncthreads(); | if (t >= d) __syncthreads();
    s[t] += v;  //@ missing second barrier
    __syncthreads();
  }
  if (i < n) y[i] = s[t];
}
__global__ void counter(T* x, T* y, int n) {
  __shared__ int found;
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t == 0) found = 0;  //@ missing barrier  //~ uninitialised | if (t == 0) found = 0; |
  __syncthreads();  //~ missing barrier | __syncthreads(); | 
  if (i < n && x[i] > 0) atomicAdd(&found, 1);  //~ missing atomic | atomicAdd(&found, 1) | ++found  //@ missing barrier  //@ uninitialised  //~ missing guard | i < n && | 
  __syncthreads();
  if (t == 0) y[blockIdx.x] = found;  //~ missing block offset | y[blockIdx.x] | y[1]  //@ uninitialised
}
__global__ void sums(T* x, T* y, int n) {
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i < n) atomicAdd(&y[i % 4], (T)1);  //~ missing atomic | atomicAdd(&y[i % 4], (T)1) | y[i % 4] += 1  //~ negative index | y[i % 4] | y[i % 4 - 4]
}
__global__ void strided(T* x, T* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)  //~ off by one | i < n | i <= n  //~ missing block offset | blockIdx.x * blockDim.x + threadIdx.x | threadIdx.x
    y[i] = x[i] * 2;  //@ off by one  //@ missing block offset  //~ negative index | x[i] | x[i - 3]
}
__global__ void pairs(T* x, T* y, int n) {
  __shared__ T s[128];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[2 * t] = i < n ? x[i] : 0;  //@ missing barrier
  s[2 * t + 1] = 1;  //~ off by one | 2 * t + 1 | 2 * t + 2
  __syncthreads();  //~ missing barrier | __syncthreads(); | 
  T v = s[t] + s[t + 64];  //@ missing barrier
  if (i < n) y[i] = v;
}
__global__ void largest(T* x, T* y, int n) {
  __shared__ int best;
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t == 0) best = -1000;
  __syncthreads();
  if (i < n) atomicMax(&best, (int)x[i]);  //~ missing atomic | atomicMax(&best, (int)x[i]) | best = max(best, (int)x[i])
  __syncthreads();  //~ divergent barrier | __syncthreads(); | if (x[i % n] > 0) __syncthreads();
  if (i < n) y[i] = x[i] - best;  //~ missing guard | if (i < n) | 
}
__global__ void rounds(T* x, T* y, int n) {
  __shared__ T s[2][64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[0][t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int k = 0; k < 5; ++k) {
    s[1 - k % 2][t] = s[k % 2][t] + s[k % 2][(t + 7) % 64];  //@ missing second barrier  //~ negative index | (t + 7) % 64 | t - 7
    __syncthreads();  //~ missing second barrier | __syncthreads(); | 
  }
  if (i < n) y[i] = s[1][t];
}
__global__ void tiles(T* x, T* y, int n) {
  __shared__ T s[16];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  T sum = 0;
  for (int k = 0; k < 4; ++k) {
    if (t < 16) s[t] = x[k * 16 + t];  //@ missing second barrier  //~ uninitialised | t < 16 | t < 15
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += s[j];  //@ missing second barrier  //@ uninitialised  //~ off by one | j < 16 | j <= 16
    __syncthreads();  //~ missing second barrier | __syncthreads(); | 
  }
  if (i < n) y[i] = sum;  //~ missing guard | if (i < n) | 
}
__global__ void append(T* x, T* y, int n) {
  __shared__ int used;
  __shared__ T list[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t == 0) used = 0;
  __syncthreads();
  if (i < n && x[i] > 0) {
    int at = atomicAdd(&used, 1);  //~ missing atomic | atomicAdd(&used, 1) | used++
    list[at] = x[i];  //@ missing barrier
  }
  __syncthreads();  //~ missing barrier | __syncthreads(); | 
  if (t < used && t < 50) y[blockIdx.x * 50 + t] = list[t];  //@ missing barrier
}
__global__ void exchange(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;
  __syncwarp();
  for (int k = 1; k < 32; k *= 2) {
    T v = s[t ^ k];  //@ missing syncwarp
    __syncwarp();  //~ missing syncwarp | __syncwarp(); | 
    s[t] = lane & k ? v : s[t] + v;  //@ missing syncwarp
    __syncwarp();
  }
  if (i < n) y[i] = s[t];
}
__global__ void turn(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;
  __syncwarp();
  T v = s[t / 32 * 32 + (t + 5) % 32];  //@ missing syncwarp
  __syncwarp();  //~ missing syncwarp | __syncwarp(); | 
  s[t] = v;  //@ missing syncwarp
  if (i < n) y[i] = s[t];
}
__global__ void votes(T* x, T* y, int n) {
  __shared__ T s[2];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  T v = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (t % 32 == 0) s[t / 32] = v;  //@ missing barrier  //~ missing block offset | s[t / 32] = v | s[t / 32] = v, y[7] = v
  __syncthreads();  //~ missing barrier | __syncthreads(); |   //~ divergent barrier | __syncthreads(); | if (t % 32 == 0) __syncthreads();
  if (t == 0) y[blockIdx.x] = s[0] + s[1];  //@ missing barrier
}
__global__ void shifted(T* x, T* y, int n) {
  __shared__ T s[96];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = 0;
  __syncwarp();
  if (t >= 32) s[t + 32] = 1;  //~ missing atomic | s[t + 32] = 1 | s[64] += 1
  __syncwarp();
  s[t] = i < n ? x[i] : 0;  //@ missing syncwarp
  __syncwarp();  //~ missing syncwarp | __syncwarp(); | 
  T v = s[t ^ 3];  //@ missing syncwarp
  if (i < n) y[i] = v;
}
__global__ void deviation(T* x, T* y, int n) {
  __shared__ T s[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  T v = i < n ? x[i] : 0;
  s[t] = v;
  __syncthreads();
  T mean = 0;
  for (int j = 0; j < 64; ++j) mean += s[j] / 64;  //@ missing second barrier  //~ off by one | j < 64 | j < 65
  __syncthreads();  //~ missing second barrier | __syncthreads(); | 
  s[t] = (v - mean) * (v - mean);  //@ missing second barrier
  __syncthreads();
  if (i < n) y[i] = s[t] + s[t / 2];
}
__global__ void waves(T* x, T* y, int n) {
  extern __shared__ char bytes[];
  T* s = (T*)bytes;
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int k = 0; k < 3; ++k) {
    T v = s[t == 0 ? 0 : t - 1] + s[t == 63 ? 63 : t + 1];  //@ missing second barrier  //~ negative index | t == 0 ? 0 : t - 1 | t - 1
    __syncthreads();  //~ missing second barrier | __syncthreads(); | 
    s[t] = v;  //@ missing second barrier
    __syncthreads();
  }
  if (i < n) y[i] = s[t];  //~ missing guard | if (i < n) | 
}
__global__ void folded(T* x, T* y, int n) {
  __shared__ T s[2][32];
  int t = threadIdx.x, w = t / 32, lane = t % 32, i = blockIdx.x * 64 + t;
  s[w][lane] = i < n ? x[i] : 0;  //@ missing syncwarp
  __syncwarp();  //~ missing syncwarp | __syncwarp(); | 
  if (lane < 16) y[blockIdx.x * 32 + w * 16 + lane] = s[w][lane] + s[w][31 - lane];  //@ missing syncwarp  //~ off by one | 31 - lane | 32 - lane
}
