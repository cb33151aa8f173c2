#include "check.h"
#include <climits>
#include <cfloat>
__global__ void ops(int* i, unsigned* u, unsigned long long* l, long long* sl, float* f, double* d) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&i[0], -t); atomicSub(&i[1], t); atomicMin(&i[2], 50 - t); atomicMax(&i[3], t - 300); atomicAnd(&i[4], ~(1 << t % 31)); atomicOr(&i[5], 1 << t % 20); atomicXor(&i[6], t);
  atomicAdd(&u[0], 0xf0000000u + t); atomicMin(&u[1], 0x80000000u + t); atomicMax(&u[2], 0x80000000u - t); atomicInc(&u[3], 6); atomicDec(&u[4], 6); atomicSub(&u[5], 3u);
  atomicAdd(&l[0], 0x100000000ull * t); atomicMin(&l[1], ~0ull - t); atomicMax(&l[2], 1ull << t % 64); atomicAnd(&l[3], ~(1ull << t % 64)); atomicOr(&l[4], 1ull << t % 50); atomicXor(&l[5], (unsigned long long)t << 33);
  atomicMin(&sl[0], -(long long)t * 10000000000ll); atomicMax(&sl[1], -(long long)t - 7);
  atomicAdd(&f[0], 0.5f * t); atomicAdd(&d[0], 0.25 * t);
}
__device__ float atomicMinFloat(float* a, float v) { return v >= 0 ? __int_as_float(atomicMin((int*)a, __float_as_int(v))) : __uint_as_float(atomicMax((unsigned*)a, __float_as_uint(v))); }
__device__ float atomicMaxFloat(float* a, float v) { return v >= 0 ? __int_as_float(atomicMax((int*)a, __float_as_int(v))) : __uint_as_float(atomicMin((unsigned*)a, __float_as_uint(v))); }
__device__ double addByCas(double* a, double v) { unsigned long long* p = (unsigned long long*)a, old = *p, assumed; do { assumed = old; old = atomicCAS(p, assumed, __double_as_longlong(v + __longlong_as_double(assumed))); } while (assumed != old); return __longlong_as_double(old); }
__device__ float mulByCas(float* a, float v) { int* p = (int*)a; int old = *p, assumed; do { assumed = old; old = atomicCAS(p, assumed, __float_as_int(v * __int_as_float(assumed))); } while (assumed != old); return __int_as_float(old); }
__global__ void tricks(const float* v, float* f, double* d, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  atomicMinFloat(&f[0], v[t]); atomicMaxFloat(&f[1], v[t]); addByCas(d, v[t]); mulByCas(&f[2], t % 2 ? 2.f : 0.5f); mulByCas(&f[3], t % 3 ? 1.f : -1.f);
}
__global__ void olds(int* seen, int* c, unsigned* ring, unsigned* count) {
  int old = atomicAdd(c, 2);
  atomicAdd(&seen[old / 2], 1);
  unsigned r = atomicInc(ring, 4);
  atomicAdd(&count[r], 1u);
}
__global__ void exchange(int* slot, int* sum) {  // every value leaves the slot exactly once, but the last
  int old = atomicExch(slot, threadIdx.x + 1);
  atomicAdd(sum, old);
}
__global__ void shorts(unsigned short* s, unsigned short* olds) {
  int t = threadIdx.x;
  unsigned short old = s[0], assumed;
  do { assumed = old; old = atomicCAS(&s[0], assumed, (unsigned short)(assumed + 3)); } while (old != assumed);
  olds[t] = atomicCAS(&s[1], (unsigned short)65535, (unsigned short)9) == 65535;
}
__global__ void hist(const unsigned char* in, int n, unsigned* bins) {
  __shared__ unsigned s[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], s[i]);
}
__device__ unsigned ticket = 0;
__global__ void last_block(const int* in, int* part, int* out, int n) {
  __shared__ int s[64]; __shared__ bool last;
  int t = threadIdx.x, v = 0;
  for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) v += in[i];
  s[t] = v; __syncthreads();
  for (int d = 32; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t == 0) { part[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(&ticket, gridDim.x) == gridDim.x - 1; }
  __syncthreads();
  if (last) { int q = t < gridDim.x ? ((volatile int*)part)[t] : 0; s[t] = q; __syncthreads(); for (int d = 32; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); } if (t == 0) { *out = s[0]; ticket = 0; } }
}
__global__ void lock(int* mutex, int* value) {  // one thread of each block takes the lock
  if (threadIdx.x == 0) { while (atomicCAS(mutex, 0, 1) != 0) {} __threadfence(); *value = *value * 1 + 5; __threadfence(); atomicExch(mutex, 0); }
}
int main() {
  const int n = 256;
  { int* i = device(std::vector<int>{0, 0, INT_MAX, INT_MIN, -1, 0, 0}); unsigned* u = device(std::vector<unsigned>{0, ~0u, 0, 0, 3, 0}); auto* l = device(std::vector<unsigned long long>{0, ~0ull, 0, ~0ull, 0, 0}); auto* sl = device(std::vector<long long>{0, LLONG_MIN}); float* f = device<float>(1); double* d = device<double>(1);
    ops<<<4, 64>>>(i, u, l, sl, f, d);
    int x = 0; unsigned long long lx = 0, la = 0; unsigned ua = 0; for (int t = 0; t < n; ++t) { x ^= t; lx ^= (unsigned long long)t << 33; la += 0x100000000ull * t; ua += 0xf0000000u + t; }
    unsigned inc = 0, dec = 3; for (int t = 0; t < n; ++t) { inc = inc >= 6 ? 0 : inc + 1; dec = dec == 0 || dec > 6 ? 6 : dec - 1; }
    expect("int", i, std::vector<int>{-n * (n - 1) / 2, -n * (n - 1) / 2, 50 - 255, -45, (int)0x80000000u, (1 << 20) - 1, x});
    expect("unsigned", u, std::vector<unsigned>{ua, 0x80000000u, 0x80000000u, inc, dec, (unsigned)-768});
    expect("ull", l, std::vector<unsigned long long>{la, ~0ull - 255, 1ull << 63, 0, (1ull << 50) - 1, lx});
    expect("ll", sl, std::vector<long long>{-2550000000000ll, -7}); expect("float", f, std::vector<float>{0.5f * n * (n - 1) / 2}); expect("double", d, std::vector<double>{0.25 * n * (n - 1) / 2}); }
  { std::vector<float> v(100); double sum = 0; float lo = FLT_MAX, hi = -FLT_MAX; for (int t = 0; t < 100; ++t) { v[t] = (t * 37 % 101 - 50) * 0.5f; sum += v[t]; lo = std::min(lo, v[t]); hi = std::max(hi, v[t]); } float* dv = device(v); float* f = device(std::vector<float>{FLT_MAX, -FLT_MAX, 1, 1}); double* d = device<double>(1); tricks<<<2, 64>>>(dv, f, d, 100); expect("tricks", f, std::vector<float>{lo, hi, 1, 1.f}); expect("cas add", d, std::vector<double>{sum}); }
  { int* seen = device<int>(128); int* c = device<int>(1); unsigned* r = device<unsigned>(1); unsigned* q = device<unsigned>(5); olds<<<2, 64>>>(seen, c, r, q); expect("olds", seen, std::vector<int>(128, 1)); expect("ring", q, std::vector<unsigned>{26, 26, 26, 25, 25}); }
  { int* s = device<int>(1); int* sum = device<int>(1); exchange<<<1, 50>>>(s, sum); cudaDeviceSynchronize(); int last; cudaMemcpy(&last, s, 4, cudaMemcpyDeviceToHost); expect("exchange", sum, std::vector<int>{50 * 51 / 2 - last}); }
  { auto* s = device(std::vector<unsigned short>{65500, 65535}); auto* o = device<unsigned short>(32); shorts<<<1, 32>>>(s, o); expect("shorts", s, std::vector<unsigned short>{(unsigned short)(65500 + 96), 9}); }
  { std::vector<unsigned char> in(5000); std::vector<unsigned> w(256); for (int i = 0; i < 5000; ++i) { in[i] = (unsigned char)(i * i % 251); ++w[in[i]]; } auto* d = device(in); auto* b = device<unsigned>(256); hist<<<3, 96>>>(d, 5000, b); expect("hist", b, w); }
  { std::vector<int> in(10000); int s = 0; for (int i = 0; i < 10000; ++i) s += in[i] = i % 77 - 30; auto* d = device(in); auto* p = device<int>(20); auto* o = device<int>(2); for (int k = 0; k < 2; ++k) last_block<<<20, 64>>>(d, p, o + k, 10000); expect("last_block", o, std::vector<int>{s, s}); }
  { int* m = device<int>(1); int* v = device<int>(1); lock<<<30, 32>>>(m, v); expect("lock", v, std::vector<int>{150}); }
  return done("atomics");
}
