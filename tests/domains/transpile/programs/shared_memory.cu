#include "check.h"
template <class T> struct Shared { __device__ operator T*() { extern __shared__ int raw[]; return (T*)raw; } };
template <> struct Shared<double> { __device__ operator double*() { extern __shared__ double raw_d[]; return raw_d; } };
template <class T> __global__ void typed(T* o) { T* s = Shared<T>(); int t = threadIdx.x; s[t] = (T)(t * 1.5); __syncthreads(); o[t] = s[blockDim.x - 1 - t]; }
__global__ void several(double* o, int n) {  // one buffer, three arrays
  extern __shared__ __align__(16) unsigned char raw[];
  double* d = (double*)raw; float* f = (float*)(d + n); short* h = (short*)(f + n); char* c = (char*)&h[n];
  int t = threadIdx.x;
  d[t] = t * 0.25; f[t] = t * 2.f; h[t] = (short)(t * 1000); c[t] = (char)(t * 9);
  __syncthreads();
  int u = (t + 5) % n;
  o[t] = d[u] + f[u] + h[u] + c[u];
}
__global__ void two_externs(int* o) {  // both names are the same memory
  extern __shared__ float as_float[];
  extern __shared__ int as_int[];
  int t = threadIdx.x;
  as_float[t] = (float)t;
  __syncthreads();
  o[t] = as_int[(t + 1) % blockDim.x];
}
__global__ void unions(unsigned* o) {
  __shared__ union { float f[32]; unsigned u[32]; unsigned char b[128]; } s;
  int t = threadIdx.x;
  s.f[t] = -1.0f / (t + 1);
  __syncthreads();
  unsigned x = s.u[31 - t] ^ s.b[4 * t + 3];
  __syncthreads();
  s.u[t] = x;
  __syncthreads();
  o[t] = s.b[t] | s.u[t] << 8;
}
struct Cell { char tag; double v; short k[3]; };
__global__ void structs(double* o) {
  __shared__ Cell cells[2][17];
  int t = threadIdx.x;
  if (t < 34) { Cell& c = cells[t / 17][t % 17]; c.tag = (char)(t - 20); c.v = t; c.k[0] = 1; c.k[1] = (short)t; c.k[2] = (short)-t; }
  __syncthreads();
  if (t < 34) { const Cell c = cells[1 - t / 17][16 - t % 17]; o[t] = c.tag * 10000.0 + c.v + c.k[1] * 0.5 + c.k[2] * 0.25 + sizeof(Cell); }
}
__global__ void transpose(const float* in, float* out, int w, int h) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
__device__ int block_sum(int* s, int v) {
  int t = threadIdx.x;
  s[t] = v;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  int r = s[0];
  __syncthreads();
  return r;
}
__global__ void twice(int* o) { __shared__ int s[128]; int a = block_sum(s, threadIdx.x), b = block_sum(s, a - threadIdx.x); o[blockIdx.x * 128 + threadIdx.x] = a + b * 3 + blockIdx.x; }
__global__ void ping_pong(int* o, int turns) {  // double buffer chosen by a run time index
  __shared__ int b[2][64];
  int t = threadIdx.x, cur = 0;
  b[0][t] = t;
  __syncthreads();
  for (int i = 0; i < turns; ++i) { b[cur ^ 1][t] = b[cur][(t + 1) % 64] + b[cur][(t + 63) % 64]; cur ^= 1; __syncthreads(); }
  o[t] = b[cur][t];
}
int main() {
  { std::vector<float> w(40); for (int t = 0; t < 40; ++t) w[t] = (39 - t) * 1.5f; float* o = device<float>(40); typed<float><<<1, 40, 160>>>(o); expect("typed float", o, w); }
  { std::vector<double> w(40); for (int t = 0; t < 40; ++t) w[t] = (39 - t) * 1.5; double* o = device<double>(40); typed<double><<<1, 40, 320>>>(o); expect("typed double", o, w); }
  { std::vector<unsigned char> w(40); for (int t = 0; t < 40; ++t) w[t] = (unsigned char)((39 - t) * 1.5); unsigned char* o = device<unsigned char>(40); typed<unsigned char><<<1, 40, 40>>>(o); expect("typed uchar", o, w); }
  { int n = 45; std::vector<double> w(n); for (int t = 0; t < n; ++t) { int u = (t + 5) % n; w[t] = u * 0.25 + u * 2.0 + (short)(u * 1000) + (signed char)(u * 9); } double* o = device<double>(n); several<<<1, n, n * 15>>>(o, n); expect("several", o, w); }
  { std::vector<int> w(33); for (int t = 0; t < 33; ++t) { float f = (float)((t + 1) % 33); std::memcpy(&w[t], &f, 4); } int* o = device<int>(33); two_externs<<<1, 33, 33 * 4>>>(o); expect("two_externs", o, w); }
  { unsigned u[32]; for (int t = 0; t < 32; ++t) { float f = -1.0f / (t + 1); std::memcpy(&u[t], &f, 4); } unsigned x[32]; for (int t = 0; t < 32; ++t) x[t] = u[31 - t] ^ (u[t] >> 24); std::vector<unsigned> w(32); for (int t = 0; t < 32; ++t) w[t] = (x[t / 4] >> (8 * (t % 4)) & 255) | x[t] << 8; unsigned* o = device<unsigned>(32); unions<<<1, 32>>>(o); expect("unions", o, w); }
  { std::vector<double> w(34); for (int t = 0; t < 34; ++t) { int u = (1 - t / 17) * 17 + 16 - t % 17; w[t] = (u - 20) * 10000.0 + u + u * 0.5 - u * 0.25 + 24; } double* o = device<double>(34); structs<<<1, 64>>>(o); expect("structs", o, w); }
  { int W = 70, H = 45; std::vector<float> in(W * H), w(W * H); for (int i = 0; i < W * H; ++i) in[i] = (float)i; for (int y = 0; y < H; ++y) for (int x = 0; x < W; ++x) w[x * H + y] = in[y * W + x]; float* a = device(in); float* o = device<float>(W * H); transpose<<<dim3(3, 2), dim3(32, 8)>>>(a, o, W, H); expect("transpose", o, w); }
  { std::vector<int> w(256); int a = 127 * 64, b = 128 * a - a; for (int i = 0; i < 256; ++i) w[i] = a + b * 3 + i / 128; int* o = device<int>(256); twice<<<2, 128>>>(o); expect("twice", o, w); }
  { std::vector<int> b(64), u; for (int t = 0; t < 64; ++t) b[t] = t; for (int i = 0; i < 7; ++i) { u = b; for (int t = 0; t < 64; ++t) b[t] = u[(t + 1) % 64] + u[(t + 63) % 64]; } int* o = device<int>(64); ping_pong<<<1, 64>>>(o, 7); expect("ping_pong", o, b); }
  return done("shared");
}
