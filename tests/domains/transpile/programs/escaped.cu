#include "check.h"
#include <utility>
struct P { int n; float k[5]; int m[2][3]; };
struct Counter { int a; __device__ int operator()(int i) { a += i; return a; } };
struct Range { int from, to, at; __device__ Range(int f, int t) : from(f), to(t), at(f) {} __device__ bool more() const { return at < to; } __device__ int next() { return at++; } };
__device__ void fill(float* k, int n, float v) { for (int i = 0; i < n; ++i) k[i] = v + i; }
__device__ float total(const float* k, int n) { float s = 0; for (int i = 0; i < n; ++i) s += k[i]; return s; }
__device__ P changed(P p, int by) { p.n += by; p.k[1] += by; return p; }
template <class T> __device__ void exchange(T& a, T& b) { T t = a; a = b; b = t; }
__global__ void by_reference(P p, int* o) { int& n = p.n; n += threadIdx.x; P& q = p; q.k[1] += 2; o[threadIdx.x] = p.n * 10 + (int)p.k[1]; }
__global__ void decayed(P p, int* o) { fill(p.k, 5, threadIdx.x); o[threadIdx.x] = (int)total(p.k, 5); }
__global__ void by_pointer(P p, int* o) { float* k = p.k + 1; k[1] += threadIdx.x; *k = 7; int (*m)[3] = p.m; m[1][threadIdx.x % 3] += 5; o[threadIdx.x] = (int)(p.k[2] * 100 + p.k[1]) * 100 + p.m[1][threadIdx.x % 3]; }
__global__ void swapped(P p, int a, int b, int* o) { if (threadIdx.x % 2) exchange(a, b); if (threadIdx.x % 3) std::swap(p.m[0][0], p.m[1][2]); o[threadIdx.x] = a * 100 + b * 10 + p.m[0][0]; }
__global__ void passed(P p, int* o) { P q = changed(p, threadIdx.x); q = changed(q, 1); o[threadIdx.x] = q.n * 10000 + p.n * 1000 + (int)q.k[1] * 10 + (int)p.k[1]; }
template <class F> __global__ void kept(F f, int* o) { F g = f; __syncthreads(); g(threadIdx.x); __syncthreads(); o[threadIdx.x] = g(1); }
template <class F> __global__ void kept_twice(F f, int* o) { F g = f; F h = f; for (int i = 0; i < 3; ++i) { g(i); __syncthreads(); if (threadIdx.x % 2) h(1); } o[threadIdx.x] = g(0) * 100 + h(0); }
template <class F> __global__ void called_between(F f, int* o) { f(threadIdx.x); __syncthreads(); o[threadIdx.x] = f(1); }
__global__ void ranges(int* o) { int s = 0; for (Range r(threadIdx.x % 3, 6); r.more();) { int v = r.next(); s = s * 7 + v; } Range u(0, 4); while (u.more()) s += u.next(); o[threadIdx.x] = s; }
__global__ void looped(P p, int* o, int n) { for (int i = 0; i < n; ++i) { p.m[i % 2][threadIdx.x % 3] += i; if (i % 4 == (int)threadIdx.x % 4) p.n -= 1; } o[threadIdx.x] = p.m[0][threadIdx.x % 3] * 1000 + p.m[1][threadIdx.x % 3] * 10 + p.n; }
__global__ void struct_in_loop(const P* in, int* o, int n) { P best = in[0]; for (int i = threadIdx.x % 2; i < n; i += 2) if (in[i].n > best.n) best = in[i]; best.k[0] += threadIdx.x; o[threadIdx.x] = best.n * 100 + (int)best.k[0]; }
__global__ void array_of_structs(int* o) { P a[3]; for (int i = 0; i < 3; ++i) { a[i].n = i * (int)threadIdx.x; a[i].k[i] = i; } P* q = &a[threadIdx.x % 3]; q->n += 1000; exchange(a[0].n, a[2].n); o[threadIdx.x] = a[0].n + a[1].n * 2 + a[2].n * 4; }
__global__ void scalar_reference(int n, float f, int* o) { int& m = n; m += threadIdx.x; float* g = &f; *g *= 2; o[threadIdx.x] = n * 10 + (int)f; }
__global__ void pointer_parameter(const int* in, int* o, int n) { in += threadIdx.x; while (n-- > 0) { o[threadIdx.x] += *in++; } int** q = &o; (*q)[threadIdx.x] += 1; }
int main() {
  std::vector<int> w(32); P p{10, {1, 2, 3, 4, 5}, {{1, 2, 3}, {4, 5, 6}}};
#define RUN(K, EXPR, ...) { int* o = device<int>(32); K<<<1, 32>>>(__VA_ARGS__); for (int t = 0; t < 32; ++t) w[t] = EXPR; expect(#K, o, w); }
  RUN(by_reference, (10 + t) * 10 + 4, p, o)
  RUN(decayed, 5 * t + 10, p, o)
  RUN(by_pointer, ((3 + t) * 100 + 7) * 100 + 4 + t % 3 + 5, p, o)
  RUN(swapped, (t % 2 ? 43 : 34) * 10 + (t % 3 ? 6 : 1), p, 3, 4, o)
  RUN(passed, (11 + t) * 10000 + 10000 + (3 + t) * 10 + 2, p, o)
  RUN(kept, 7 + t + 1, Counter{7}, o)
  RUN(kept_twice, (7 + 3) * 100 + (t % 2 ? 10 : 7), Counter{7}, o)
  RUN(called_between, 7 + t + 1, Counter{7}, o)
  RUN(ranges, ([&] { int s = 0; for (int v = t % 3; v < 6; ++v) s = s * 7 + v; return s + 6; }()), o)
  RUN(looped, ([&] { int m[2] = {t % 3 + 1, t % 3 + 4}, n = 10; for (int i = 0; i < 9; ++i) { m[i % 2] += i; if (i % 4 == t % 4) --n; } return m[0] * 1000 + m[1] * 10 + n; }()), p, o, 9)
  std::vector<P> ps(10, p); for (int i = 0; i < 10; ++i) { ps[i].n = i * 7 % 10; ps[i].k[0] = i; } P* dp = device(ps);
  RUN(struct_in_loop, ([&] { int b = 0; for (int i = t % 2; i < 10; i += 2) if (ps[i].n > ps[b].n) b = i; return ps[b].n * 100 + b + t; }()), dp, o, 10)
  RUN(array_of_structs, ([&] { int a[3] = {0, t, 2 * t}; a[t % 3] += 1000; return a[2] + a[1] * 2 + a[0] * 4; }()), o)
  RUN(scalar_reference, (5 + t) * 10 + 3, 5, 1.5f, o)
  std::vector<int> v(64); for (int i = 0; i < 64; ++i) v[i] = i * i; int* in = device(v);
  RUN(pointer_parameter, ([&] { int s = 1; for (int i = 0; i < 6; ++i) s += (t + i) * (t + i); return s; }()), in, o, 6)
  return done("escape");
}
