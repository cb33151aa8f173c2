#include "check.h"
#include <new>
#include <initializer_list>
struct A { int x, y; }; struct B { int v; __device__ B(int a, int b = 3) : v(a * 10 + b) {} __device__ operator int() const { return v; } __device__ static B of(int a) { return B(a, 1); } }; struct C { A a; int z[3]; };
__device__ A make(int t) { return {t, t + 1}; }
__device__ int sum(std::initializer_list<int> l) { int s = 0; for (int v : l) s = s * 3 + v; return s; }
template <class T> __device__ T twice(T v) { return v + v; }
__global__ void news(int* o) { char room[16]; B* b = new (room) B(threadIdx.x); B* c = new B(threadIdx.x, threadIdx.x % 5); A* a = new A{(int)threadIdx.x, 2}; int* n = new int(threadIdx.x + 7); o[threadIdx.x] = b->v + c->v * 2 + a->x * 3 + *n; delete c; delete a; delete n; }
__global__ void switches(int* o) { int r; switch (threadIdx.x % 4) { case 0: r = threadIdx.x; break; case 1: { B b(threadIdx.x, 2); r = b; } break; default: r = -(int)threadIdx.x; case 7: r *= 2; } switch (blockIdx.x) { case 1: r += 1000 * threadIdx.y; } o[blockIdx.x * 64 + threadIdx.y * 32 + threadIdx.x] = r; }
__global__ void lambdas(int* o) { auto f = [](int a) { return a * 2 + (int)threadIdx.x; }; int k = threadIdx.x; auto g = [k, m = threadIdx.x * 3](int a) { return a + k + (int)m; }; auto h = [&] { k += threadIdx.x; return k; }; int q = h(); o[threadIdx.x] = f(1) * 100 + g(2) + q * 10000; }
__global__ void lists(int* o) { A a = {(int)threadIdx.x, (int)threadIdx.x * 2}, b{.x = 1, .y = (int)threadIdx.x}; int v[3] = {(int)threadIdx.x, 5, (int)(threadIdx.x % 7)}; C c{{1, (int)threadIdx.x}, {(int)threadIdx.x + 1}}; int s = 0; for (int w : {(int)threadIdx.x, 2, (int)threadIdx.x * 2}) s = s * 2 + w; for (int& w : v) w += threadIdx.x; o[threadIdx.x] = a.x + a.y * 2 + b.y * 3 + v[0] + v[2] * 5 + c.a.y * 7 + c.z[0] * 11 + c.z[2] + s * 13 + sum({(int)threadIdx.x, 4}); }
__global__ void bound(int* o) { auto [p, q] = make(threadIdx.x); const auto& [r, s] = make(threadIdx.x * 2); if (int v = threadIdx.x % 3; v > 1) p += v; if (auto [u, w] = make(threadIdx.x % 2); u) q += w; while (int v = p % 4) p += v > 1 ? 1 : 3; o[threadIdx.x] = p + q * 100 + r * 10000 + s; }
__global__ void casts(int* o) { B b = B(threadIdx.x); B c = B(threadIdx.x, 4); B d = static_cast<B>(threadIdx.x + 1); B e = (B)(int)threadIdx.x; B f = B{(int)threadIdx.x, 6}; const B& g = B(threadIdx.x, 8); int h = int(threadIdx.x) + unsigned(threadIdx.x % 3) + B::of(threadIdx.x) + twice<int>(B(threadIdx.x)) + (B(threadIdx.x, 1), 5) + sizeof(B(threadIdx.x)); o[threadIdx.x] = b + c * 2 + d * 3 + e * 4 + f * 5 + g * 6 + h * 7; }
__global__ void blocks(int* o) { B b(blockIdx.x, blockDim.x); B c = B(gridDim.x, blockIdx.x); int v[2] = {(int)blockIdx.x, (int)gridDim.x}; o[blockIdx.x * blockDim.x + threadIdx.x] = b + c * 3 + v[0] * 7 + v[1]; }
__global__ void barriers(int* o) { __shared__ int s[32]; B b(threadIdx.x, 2); A a{(int)threadIdx.x, 1}; s[threadIdx.x] = B(threadIdx.x ^ 1); __syncthreads(); auto [x, y] = make(s[(threadIdx.x + 1) % 32]); __syncthreads(); switch (threadIdx.x % 2) { case 0: a.y += threadIdx.x; } int w = __shfl_sync(~0u, (int)B(threadIdx.x, 5), 3); o[threadIdx.x] = b + a.x + a.y * 3 + x + y * 2 + w; }
__device__ int recent(int v = (int)threadIdx.x) { return v * 2; }
__global__ void defaults(int* o) { o[threadIdx.x] = recent() + recent(3); }
__global__ void ternaries(int* o) { int t = threadIdx.x; A a = t % 2 ? A{t, 1} : make(threadIdx.x + 5); const char* n = t % 3 ? "odd" : "even!"; int k = 0; while (n[k]) ++k; B b = t < 9 ? B(threadIdx.x) : B(1, threadIdx.x); o[t] = a.x + a.y * 10 + k * 100 + b * 1000; }
int main() {
  std::vector<int> w(32); auto B_ = [](int a, int b) { return a * 10 + b; };
#define RUN(K, EXPR) { int* o = device<int>(32); K<<<1, 32>>>(o); for (int t = 0; t < 32; ++t) w[t] = EXPR; expect(#K, o, w); }
  RUN(news, B_(t, 3) + B_(t, t % 5) * 2 + t * 3 + t + 7)
  { std::vector<int> w2(128); for (int b = 0; b < 2; ++b) for (int y = 0; y < 2; ++y) for (int t = 0; t < 32; ++t) w2[b * 64 + y * 32 + t] = (t % 4 == 0 ? t : t % 4 == 1 ? B_(t, 2) : -2 * t) + (b ? 1000 * y : 0); int* o = device<int>(128); switches<<<2, dim3(32, 2)>>>(o); expect("switches", o, w2); }
  RUN(lambdas, (2 + t) * 100 + 2 + t + 3 * t + 2 * t * 10000)
  RUN(lists, t + 4 * t + 3 * t + 2 * t + (t % 7 + t) * 5 + 7 * t + (t + 1) * 11 + ((t * 2 + 2) * 2 + 2 * t) * 13 + t * 3 + 4)
  RUN(bound, ([&] { int p = t + (t % 3 > 1 ? 2 : 0), q = t + 1 + (t % 2 ? 2 : 0); while (int v = p % 4) p += v > 1 ? 1 : 3; return p + q * 100 + 2 * t * 10000 + 2 * t + 1; }()))
  RUN(casts, B_(t, 3) + B_(t, 4) * 2 + B_(t + 1, 3) * 3 + B_(t, 3) * 4 + B_(t, 6) * 5 + B_(t, 8) * 6 + (t + t % 3 + B_(t, 1) + 2 * B_(t, 3) + 5 + 4) * 7)
  { std::vector<int> w3(96); for (int b = 0; b < 3; ++b) for (int t = 0; t < 32; ++t) w3[b * 32 + t] = B_(b, 32) + B_(3, b) * 3 + b * 7 + 3; int* o = device<int>(96); blocks<<<3, 32>>>(o); expect("blocks", o, w3); }
  RUN(barriers, B_(t, 2) + t + (1 + (t % 2 ? 0 : t)) * 3 + B_(((t + 1) % 32) ^ 1, 3) * 3 + 2 + B_(3, 5))
  RUN(defaults, 2 * t + 6)
  RUN(ternaries, (t % 2 ? t + 10 : t + 5 + (t + 6) * 10) + (t % 3 ? 3 : 5) * 100 + (t < 9 ? B_(t, 3) : B_(1, t)) * 1000)
  return done("raw");
}
