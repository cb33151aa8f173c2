#include "check.h"
#include <type_traits>
#include <new>
template <class T, int N> __device__ constexpr int size_of_it() { if constexpr (std::is_same_v<T, double>) return N * 2; else if constexpr (N > 4) return N; else return -N; }
template <class... T> __device__ auto sum(T... t) { return (t + ... + 0); }
template <class T, int N> __global__ void traits(int* o) { constexpr int k = size_of_it<T, N>(); o[threadIdx.x] = k * 10 + sum(1, 2, (int)threadIdx.x); }
template <class F> __global__ void apply(F f, int* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = f(i); }
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ int ack(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1)); }
__global__ void recurse(int* o) { int t = threadIdx.x; o[t] = fib(t % 15) * 100 + ack(2, t % 5); }
typedef int (*Op)(int, int);
__device__ int op_add(int a, int b) { return a + b; }
__device__ int op_mul(int a, int b) { return a * b; }
__device__ int op_sub(int a, int b) { return a - b; }
__device__ Op ops[3] = {op_add, op_mul, op_sub};
__device__ Op chosen = op_mul;
__global__ void pointers(int* o, Op from_host) { int t = threadIdx.x; Op p = ops[t % 3]; o[t] = p(t, 3) + chosen(t, 2) + from_host(t, 1); }
struct Shape { __device__ virtual ~Shape() {} __device__ virtual float area() const = 0; __device__ virtual int sides() const { return 0; } };
struct Square : Shape { float a; __device__ Square(float v) : a(v) {} __device__ float area() const override { return a * a; } __device__ int sides() const override { return 4; } };
struct Circle : Shape { float r; __device__ Circle(float v) : r(v) {} __device__ float area() const override { return 3 * r * r; } };
__global__ void virtuals(float* o) { int t = threadIdx.x; Shape* s = t % 2 ? (Shape*)new Square(t) : (Shape*)new Circle(t); o[t] = s->area() * 10 + s->sides(); delete s; alignas(8) char room[sizeof(Square)]; Shape* p = new (room) Square(2.f * t); o[32 + t] = p->area(); p->~Shape(); }
struct Flags { unsigned a : 3; int b : 5; unsigned c : 10; unsigned char d : 1; unsigned long long e : 40; };
__global__ void bitfields(int* o) { int t = threadIdx.x; Flags f; f.a = t; f.b = t; f.c = t * 100; f.d = t; f.e = (unsigned long long)t << 36; f.a += 3; f.b--; o[t] = f.a; o[32 + t] = f.b; o[64 + t] = f.c; o[96 + t] = f.d; o[128 + t] = (int)(f.e >> 36); }
union Pun { float f; int i; unsigned char b[4]; struct { unsigned short lo, hi; } h; };
__global__ void puns(int* o) { int t = threadIdx.x; Pun p; p.f = t * 1.25f; o[t] = p.h.hi ^ p.h.lo; p.b[3] = 0x40; p.i ^= 1; o[32 + t] = p.i; }
struct __align__(16) Vec { float x, y, z; };
struct Mixed { char c; Vec v; short s; };
__global__ void aligns(int* o) { o[0] = sizeof(Vec); o[1] = alignof(Vec); o[2] = sizeof(Mixed); o[3] = offsetof(Mixed, s); o[4] = sizeof(float3); o[5] = alignof(float4); o[6] = alignof(double2); o[7] = sizeof(long); o[8] = sizeof(short3); o[9] = alignof(int2); o[10] = sizeof(Flags); o[11] = alignof(uchar4); o[12] = sizeof(void*); o[13] = sizeof(dim3); o[14] = alignof(longlong2); o[15] = sizeof(bool); }
struct Params { int n; float k[5]; struct { short a, b; } in; };
__global__ void by_value(Params p, int* o) { p.n += threadIdx.x; p.k[threadIdx.x % 5] *= 2; o[threadIdx.x] = p.n + (int)p.k[threadIdx.x % 5] + p.in.a * p.in.b; }
__global__ void __launch_bounds__(64, 2) local_arrays(int* o, const int* at) { int a[16]; int t = threadIdx.x; for (int i = 0; i < 16; ++i) a[i] = i * t; a[at[t] & 15] = -1; int s = 0; for (int i = 0; i < 16; ++i) { s = s * 3 + a[(i * 7 + t) % 16]; if (s > 100000) s %= 1000; } o[t] = s; }
__global__ void jumps(int* o) { int t = threadIdx.x, i = 0, s = 0; again: s += i * t; if (++i < t % 6) goto again; for (;;) { if (s % 7 == 0) break; ++s; switch (s % 3) { case 0: continue; case 1: s += 2; default: break; } if (s > 500) goto out; } s += 10000; out: o[t] = s; }
namespace inner { template <class T> struct Functor { T k; __host__ __device__ T operator()(T x) const { return x * k; } }; enum class Mode : unsigned char { A = 200, B }; template <Mode M> __global__ void mode(int* o) { o[threadIdx.x] = (int)M + (M == Mode::B ? 1000 : 0); } }
__global__ void heap(int* o) { int t = threadIdx.x; int* p = (int*)malloc((t + 1) * 4); for (int i = 0; i <= t; ++i) p[i] = i; int s = 0; for (int i = 0; i <= t; ++i) s += p[i]; free(p); o[t] = s; }
__global__ void grid3(int* o) { int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); o[b * 12 + t] = blockIdx.z * 1000 + blockIdx.y * 100 + threadIdx.z * 10 + threadIdx.y; }
__device__ Op host_op = op_sub;
int main() {
  { int* o = device<int>(8); traits<double, 3><<<1, 8>>>(o); std::vector<int> w(8); for (int t = 0; t < 8; ++t) w[t] = 60 + 3 + t; expect("traits", o, w); traits<float, 9><<<1, 8>>>(o); for (int t = 0; t < 8; ++t) w[t] = 90 + 3 + t; expect("traits float", o, w); traits<char, 4><<<1, 8>>>(o); for (int t = 0; t < 8; ++t) w[t] = -40 + 3 + t; expect("traits char", o, w); }
  { int k = 7, n = 40; int arr[3] = {5, 6, 7}; int* o = device<int>(n); apply<<<2, 32>>>([=] __device__(int i) { return i * k + arr[i % 3]; }, o, n); std::vector<int> w(n); for (int i = 0; i < n; ++i) w[i] = i * 7 + 5 + i % 3; expect("lambda", o, w); apply<<<2, 32>>>(inner::Functor<int>{3}, o, n); for (int i = 0; i < n; ++i) w[i] = 3 * i; expect("functor", o, w); auto gen = [] __host__ __device__(auto x) { return x < 20 ? x : -x; }; apply<<<2, 32>>>(gen, o, n); for (int i = 0; i < n; ++i) w[i] = gen(i); expect("generic lambda", o, w); }
  { int* o = device<int>(32); recurse<<<1, 32>>>(o); std::vector<int> w(32); int f[16] = {0, 1}; for (int i = 2; i < 16; ++i) f[i] = f[i - 1] + f[i - 2]; for (int t = 0; t < 32; ++t) w[t] = f[t % 15] * 100 + 2 * (t % 5) + 3; expect("recurse", o, w); }
  { Op p; cudaMemcpyFromSymbol(&p, host_op, sizeof p); int* o = device<int>(32); pointers<<<1, 32>>>(o, p); std::vector<int> w(32); for (int t = 0; t < 32; ++t) w[t] = (t % 3 == 0 ? t + 3 : t % 3 == 1 ? t * 3 : t - 3) + 2 * t + t - 1; expect("pointers", o, w); }
  { float* o = device<float>(64); virtuals<<<1, 32>>>(o); std::vector<float> w(64); for (int t = 0; t < 32; ++t) { w[t] = t % 2 ? t * t * 10 + 4 : 30 * t * t; w[32 + t] = 4 * t * t; } expect("virtuals", o, w); }
  { int* o = device<int>(160); bitfields<<<1, 32>>>(o); std::vector<int> w(160); for (int t = 0; t < 32; ++t) { w[t] = (t + 3) % 8; int b = (t % 32) - (t > 15 ? 32 : 0) - 1; w[32 + t] = b < -16 ? b + 32 : b; w[64 + t] = t * 100 % 1024; w[96 + t] = t % 2; w[128 + t] = t % 16; } expect("bitfields", o, w); }
  { int* o = device<int>(64); puns<<<1, 32>>>(o); std::vector<int> w(64); for (int t = 0; t < 32; ++t) { float f = t * 1.25f; unsigned u; std::memcpy(&u, &f, 4); w[t] = (int)(u >> 16 ^ (u & 0xffff)); w[32 + t] = (int)(((u & 0xffffff) | 0x40000000) ^ 1); } expect("puns", o, w); }
  { int* o = device<int>(16); aligns<<<1, 1>>>(o); expect("aligns", o, std::vector<int>{16, 16, 48, 32, 12, 16, 16, 8, 6, 8, 8, 4, 8, 12, 16, 1}); }
  { Params p{10, {1, 2, 3, 4, 5}, {3, -4}}; int* o = device<int>(32); by_value<<<1, 32>>>(p, o); std::vector<int> w(32); for (int t = 0; t < 32; ++t) w[t] = 10 + t + 2 * (t % 5 + 1) - 12; expect("by_value", o, w); }
  { std::vector<int> at(64), w(64); for (int t = 0; t < 64; ++t) at[t] = t * 5 - 40; for (int t = 0; t < 64; ++t) { int a[16]; for (int i = 0; i < 16; ++i) a[i] = i * t; a[((at[t] % 16) + 16) % 16] = -1; int s = 0; for (int i = 0; i < 16; ++i) { s = s * 3 + a[(i * 7 + t) % 16]; if (s > 100000) s %= 1000; } w[t] = s; } int* o = device<int>(64); local_arrays<<<1, 64>>>(o, device(at)); expect("local_arrays", o, w); }
  { int* o = device<int>(64); jumps<<<1, 64>>>(o); std::vector<int> w(64); for (int t = 0; t < 64; ++t) { int s = 0, i = 0; do s += i * t; while (++i < t % 6); bool out = false; while (s % 7 != 0) { ++s; if (s % 3 == 0) continue; if (s % 3 == 1) s += 2; if (s > 500) { out = true; break; } } w[t] = out ? s : s + 10000; } expect("jumps", o, w); }
  { int* o = device<int>(4); inner::mode<inner::Mode::A><<<1, 2>>>(o); inner::mode<inner::Mode::B><<<1, 2>>>(o + 2); expect("mode", o, std::vector<int>{200, 200, 1201, 1201}); }
  { int* o = device<int>(32); heap<<<1, 32>>>(o); std::vector<int> w(32); for (int t = 0; t < 32; ++t) w[t] = t * (t + 1) / 2; expect("heap", o, w); }
  { int* o = device<int>(12 * 12); grid3<<<dim3(2, 3, 2), dim3(2, 3, 2)>>>(o); std::vector<int> w(144); for (int b = 0; b < 12; ++b) for (int t = 0; t < 12; ++t) w[b * 12 + t] = b / 6 * 1000 + b / 2 % 3 * 100 + t / 6 * 10 + t / 2 % 3; expect("grid3", o, w); }
  return done("cpp");
}
