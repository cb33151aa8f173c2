#include "check.h"
struct P { int n; float k[5]; float* d; struct In { short a; } in; __device__ int step() { return ++n; } __device__ int get() const { return n; } __device__ int twice() { step(); return step(); } };
struct Op { int a; __device__ int operator()(int i) { return a * i; } };
struct Counter { int a; __device__ int operator()(int i) { a += i; return a; } };
template <class T> struct Q { T v; T a[3]; T* p; __device__ T next() { v += 1; return v; } };
__device__ void bump(P& p) { p.n += 2; }
__device__ void set(int* p, int v) { *p += v; }
__global__ void members(P p, int* o) { p.n += threadIdx.x; p.in.a = (short)threadIdx.x; p.k[threadIdx.x % 5] *= 2; o[threadIdx.x] = p.n * 100 + (int)p.k[threadIdx.x % 5] + p.in.a; }
__global__ void methods(P p, int* o) { if (threadIdx.x % 2) p.step(); p.twice(); o[threadIdx.x] = p.get(); }
__global__ void referred(P p, int n, int* o) { bump(p); set(&n, threadIdx.x); P* q = &p; q->n += 5; o[threadIdx.x] = p.n + n * 100; }
__global__ void functor(Counter c, Op f, int* o) { c(1); o[threadIdx.x] = c(threadIdx.x) * 100 + f(3); }
template <class T, class F> __global__ void open(Q<T> q, T* o, F f) { q.v += 1; q.a[threadIdx.x % 3] += 2; q.next(); int r = f(q.v); r = r * 10 + f(1); o[threadIdx.x] = r * 1000 + q.v * 100 + q.a[threadIdx.x % 3]; }
template <class F> __global__ void applied(F f, int* o) { int i = threadIdx.x; o[i] = f(i); o[32 + i] = f(i); }
__global__ void across(P p, int* o) { __shared__ int s[64]; int t = threadIdx.x; p.n += t; s[t] = p.n; __syncthreads(); p.k[t % 5] += s[(t + 1) % 64]; __syncthreads(); o[t] = p.n + (int)p.k[t % 5]; }
__global__ void loops(P p, int* o, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) { p.n += i; p.k[0] += 1; } o[blockIdx.x * blockDim.x + threadIdx.x] = p.n + (int)p.k[0] * 10000; }
__global__ void by_warp(P p, int* o) { p.n += threadIdx.x; p.n += __shfl_xor_sync(~0u, p.n, 1); o[threadIdx.x] = p.n; }
__global__ void elements(float4 v, int3 m, int* o) { v.x += threadIdx.x; v.w *= 2; m.y -= (int)threadIdx.x; o[threadIdx.x] = (int)(v.x + v.y + v.w) * 100 + m.y; }
__global__ void local(P p, int* o) { P q = p; Counter c{2}; q.n += threadIdx.x; c(threadIdx.x); __syncthreads(); q.step(); o[threadIdx.x] = q.n * 100 + c(1); }
__global__ void out(P p, int* o) { p.d[threadIdx.x] = 7; float* d = p.d + 32; d[threadIdx.x] = 8; o[threadIdx.x] = p.n; }
int main() {
  int* o = device<int>(128); float* d = device<float>(64); P p{10, {1, 2, 3, 4, 5}, d, {3}}; std::vector<int> w(32), w2(64);
  members<<<1, 32>>>(p, o); for (int t = 0; t < 32; ++t) w[t] = (10 + t) * 100 + 2 * (t % 5 + 1) + t; expect("members", o, w);
  methods<<<1, 32>>>(p, o); for (int t = 0; t < 32; ++t) w[t] = 12 + t % 2; expect("methods", o, w);
  referred<<<1, 32>>>(p, 4, o); for (int t = 0; t < 32; ++t) w[t] = 17 + (4 + t) * 100; expect("referred", o, w);
  functor<<<1, 32>>>(Counter{5}, Op{2}, o); for (int t = 0; t < 32; ++t) w[t] = (6 + t) * 100 + 6; expect("functor", o, w);
  open<<<1, 32>>>(Q<int>{1, {0, 1, 2}, o}, o, Counter{7}); for (int t = 0; t < 32; ++t) w[t] = (100 + 11) * 1000 + 300 + t % 3 + 2; expect("open", o, w);
  applied<<<1, 32>>>(Counter{7}, o); for (int t = 0; t < 32; ++t) w2[t] = 7 + t, w2[32 + t] = 7 + 2 * t; expect("applied", o, w2);
  int k = 4; applied<<<1, 32>>>([=] __device__(int i) mutable { return k += i; }, o); for (int t = 0; t < 32; ++t) w2[t] = 4 + t, w2[32 + t] = 4 + 2 * t; expect("mutable", o, w2);
  across<<<1, 64>>>(p, o); for (int t = 0; t < 64; ++t) w2[t] = 10 + t + t % 5 + 1 + 10 + (t + 1) % 64; expect("across", o, w2);
  loops<<<2, 32>>>(p, o, 70); for (int t = 0; t < 64; ++t) { int l = t % 32, s = 10, c = 1; for (int i = l; i < 70; i += 32) s += i, ++c; w2[t] = s + c * 10000; } expect("loops", o, w2);
  by_warp<<<1, 32>>>(p, o); for (int t = 0; t < 32; ++t) w[t] = 20 + t + (t ^ 1); expect("by_warp", o, w);
  elements<<<1, 32>>>(make_float4(1, 2, 3, 4), make_int3(1, 2, 3), o); for (int t = 0; t < 32; ++t) w[t] = (11 + t) * 100 + 2 - t; expect("elements", o, w);
  local<<<1, 32>>>(p, o); for (int t = 0; t < 32; ++t) w[t] = (11 + t) * 100 + 3 + t; expect("local", o, w);
  out<<<1, 32>>>(p, o); expect("out", o, std::vector<int>(32, 10)); std::vector<float> f(64, 7.f); for (int i = 32; i < 64; ++i) f[i] = 8; expect("out d", d, f);
  return done("own");
}
