#include "check.h"
struct Sum { int s = 0, n = 100; __device__ void add(int v) { s += v; ++n; } __device__ int get() const { return s * 10 + n; } };
struct Two { int a, b; __device__ Two() : a(-1), b(-2) {} __device__ Two(int x) : a(x), b(50) {} __device__ Two(int x, int y) : a(x), b(y) {} __device__ void up() { ++a; } };
struct Stack { int at[8]; int n; __device__ Stack() : n(0) {} __device__ void push(int v) { at[n++] = v; } __device__ int pop() { return at[--n]; } __device__ bool empty() const { return n == 0; } };
struct Vec3 { float x, y, z; __device__ Vec3 operator+(const Vec3& o) const { return {x + o.x, y + o.y, z + o.z}; } __device__ Vec3& operator*=(float f) { x *= f; y *= f; z *= f; return *this; } __device__ float operator[](int i) const { return i == 0 ? x : i == 1 ? y : z; } __device__ float& operator[](int i) { return i == 0 ? x : i == 1 ? y : z; } };
template <class T, int N> struct Small { T v[N]; __device__ T& operator[](int i) { return v[i]; } __device__ T operator[](int i) const { return v[i]; } };
__global__ void renewed(int* o) { int t = threadIdx.x, r = 0; for (int i = 0; i < 3; ++i) { Sum a; a.add(t + i); __syncthreads(); a.add(1); r = r * 3 + a.get(); __syncthreads(); } o[t] = r; }
__global__ void constructed(int* o) { int t = threadIdx.x; Two a(t, 3), b(t), c, d = t + 1, e{t, 4}, f = {5, t}; __syncthreads(); a.up(); b.up(); c.up(); d.up(); e.up(); f.up(); __syncthreads(); o[t] = a.a + a.b * 2 + b.a * 3 + b.b * 5 + c.a * 7 + c.b * 11 + d.a * 13 + d.b * 17 + e.a * 19 + e.b * 23 + f.a * 29 + f.b * 31; }
__global__ void stacked(int* o) { int t = threadIdx.x, s = 0; for (int k = 0; k < 2; ++k) { Stack st; for (int i = 0; i <= t % 5; ++i) st.push(i * t); __syncthreads(); while (!st.empty()) s = s * 3 + st.pop(); if (t % 2) st.push(7); __syncthreads(); } o[t] = s; }
__global__ void operators(float* o, Vec3 v, Small<int, 4> w) { int t = threadIdx.x; v *= (float)t; v[1] += 2; w[t % 4] += t; Vec3 u = v + v; u[t % 3] = 1; __syncthreads(); u *= 2; o[t] = u.x + u[1] * 10 + u.z * 100 + w[t % 4] * 1000 + w[(t + 1) % 4] * 10000; }
template <class V> __device__ V doubled(V v) { v *= 2; return v; }
template <class V, class S> __global__ void open_types(float* o, V v, S s) { int t = threadIdx.x; V u = v; u *= (float)t; u[2] = doubled(v)[0]; s[t % 4] -= t; S r = s; r[0] = 9; __syncthreads(); u = u + v; o[t] = u[0] + u[1] * 10 + u[2] * 100 + s[t % 4] * 1000 + r[0] * 100000; }
struct Base { int v; __device__ Base(int x) : v(x) {} __device__ int once() { return v++; } }; struct Child : Base { int w; __device__ Child(int x) : Base(x), w(2 * x) {} __device__ int both() { return once() * 100 + (w -= 1); } };
__global__ void derived(int* o) { Child c(threadIdx.x); int a = c.both(), b = c.both(); o[threadIdx.x] = a + b * 7 + c.once(); }
__global__ void derived_parameter(int* o, Child c, int n) { int s = 0; for (int i = 0; i < n; ++i) s += c.both(); o[threadIdx.x] = s + threadIdx.x; }
__global__ void arrays_of_objects(int* o) { int t = threadIdx.x, s = 0; for (int k = 0; k < 2; ++k) { Sum a[2]; a[t % 2].add(t); __syncthreads(); a[0].add(1); s = s * 2 + a[0].get() + a[1].get() * 3; __syncthreads(); } o[t] = s; }
template <class A> __global__ void open_objects(int* o, A) { int t = threadIdx.x, s = 0; for (int k = 0; k < 2; ++k) { A a; a.add(t); __syncthreads(); A b(a); b.add(2); a.add(1); s = s * 2 + a.get() + b.get() * 3; __syncthreads(); } o[t] = s; }
__global__ void read_only(int* o) { int t = threadIdx.x, s = 0; for (int k = 0; k < 2; ++k) { Sum a; a.s += t; if (t % 3 == 0) a.n = 7; __syncthreads(); a.n += k; s = s * 2 + a.s * 10 + a.n; __syncthreads(); } o[blockIdx.x * 32 + t] = s; }
int main() {
  std::vector<int> w(32); std::vector<float> f(32);
  { for (int t = 0; t < 32; ++t) { int r = 0; for (int i = 0; i < 3; ++i) r = r * 3 + (t + i + 1) * 10 + 102; w[t] = r; } int* o = device<int>(32); renewed<<<1, 32>>>(o); expect("renewed", o, w); }
  { for (int t = 0; t < 32; ++t) w[t] = t + 1 + 6 + (t + 1) * 3 + 250 + 0 - 22 + (t + 2) * 13 + 850 + (t + 1) * 19 + 92 + 6 * 29 + t * 31; int* o = device<int>(32); constructed<<<1, 32>>>(o); expect("constructed", o, w); }
  { for (int t = 0; t < 32; ++t) { int s = 0; for (int k = 0; k < 2; ++k) for (int i = t % 5; i >= 0; --i) s = s * 3 + i * t; w[t] = s; } int* o = device<int>(32); stacked<<<1, 32>>>(o); expect("stacked", o, w); }
  Vec3 v{1, 2, 3}; Small<int, 4> s{{1, 2, 3, 4}};
  { for (int t = 0; t < 32; ++t) { float u[3] = {1.f * t, 2.f * t + 2, 3.f * t}; for (auto& x : u) x *= 2; u[t % 3] = 1; for (auto& x : u) x *= 2; f[t] = u[0] + u[1] * 10 + u[2] * 100 + (t % 4 + 1 + t) * 1000 + ((t + 1) % 4 + 1) * 10000; } float* o = device<float>(32); operators<<<1, 32>>>(o, v, s); expect("operators", o, f); }
  { for (int t = 0; t < 32; ++t) { float u[3] = {1.f * t + 1, 2.f * t + 2, 2 + 3}; f[t] = u[0] + u[1] * 10 + u[2] * 100 + (t % 4 + 1 - t) * 1000 + 900000; } float* o = device<float>(32); open_types<<<1, 32>>>(o, v, s); expect("open_types", o, f); }
  { for (int t = 0; t < 32; ++t) w[t] = t * 100 + 2 * t - 1 + ((t + 1) * 100 + 2 * t - 2) * 7 + t + 2; int* o = device<int>(32); derived<<<1, 32>>>(o); expect("derived", o, w); }
  { Child c(4); for (int t = 0; t < 32; ++t) { int q = 0; for (int i = 0; i < 5; ++i) q += (4 + i) * 100 + 7 - i; w[t] = q + t; } int* o = device<int>(32); derived_parameter<<<1, 32>>>(o, c, 5); expect("derived_parameter", o, w); }
  { for (int t = 0; t < 32; ++t) { int a = t % 2 ? 10 + 101 : (t + 1) * 10 + 102, b = t % 2 ? t * 10 + 101 : 100, r = a + b * 3; w[t] = r * 2 + r; } int* o = device<int>(32); arrays_of_objects<<<1, 32>>>(o); expect("arrays_of_objects", o, w); }
  { for (int t = 0; t < 32; ++t) { int r = (t + 1) * 10 + 102 + ((t + 2) * 10 + 102) * 3; w[t] = r * 2 + r; } int* o = device<int>(32); open_objects<<<1, 32>>>(o, Sum()); expect("open_objects", o, w); }
  { std::vector<int> w2(96); for (int t = 0; t < 96; ++t) { int l = t % 32, n = l % 3 ? 100 : 7; w2[t] = (l * 10 + n) * 2 + l * 10 + n + 1; } int* o = device<int>(96); read_only<<<3, 32>>>(o); expect("read_only", o, w2); }
  return done("classes");
}
