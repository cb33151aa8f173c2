#include "check.h"
#include <algorithm>
#include <cuda_fp16.h>
__global__ void widths(int* o) {
  int t = threadIdx.x, v = t * 3 + 1;
  o[t] = __shfl_sync(~0u, v, t + 5, 8); o[64 + t] = __shfl_sync(~0u, v, -1); o[128 + t] = __shfl_up_sync(~0u, v, 3, 8); o[192 + t] = __shfl_down_sync(~0u, v, 3, 16); o[256 + t] = __shfl_xor_sync(~0u, v, 9, 16); o[320 + t] = __shfl_xor_sync(~0u, v, 6, 4); o[384 + t] = __shfl_sync(~0u, v, 35); o[448 + t] = __shfl_up_sync(~0u, v, 0); o[512 + t] = __shfl_down_sync(~0u, v, 31);
}
__global__ void kinds(double* o) {
  int t = threadIdx.x;
  double d = t * 0.5; long long l = (long long)t << 40; short s = (short)-t; unsigned char c = (unsigned char)(t + 250); float f = -t; half h = __float2half(t * 0.25f); unsigned long u = ~0ul - t; bool b = t % 3 == 0;
  o[t] = __shfl_sync(~0u, d, 3); o[32 + t] = (double)__shfl_down_sync(~0u, l, 1); o[64 + t] = __shfl_xor_sync(~0u, (int)s, 1); o[96 + t] = __shfl_up_sync(~0u, (unsigned)c, 2); o[128 + t] = __shfl_sync(~0u, f, 31 - t); o[160 + t] = __half2float(__shfl_xor_sync(~0u, h, 16)); o[192 + t] = (double)(~0ul - __shfl_sync(~0u, u, t ^ 3)); o[224 + t] = __shfl_sync(~0u, (int)b, (t + 1) % 32);
}
__global__ void votes(unsigned* o) {
  int t = threadIdx.x;
  o[t] = __match_any_sync(~0u, t % 5); int p; unsigned m = __match_all_sync(~0u, 7, &p); o[32 + t] = m * p; m = __match_all_sync(~0u, t / 31, &p); o[64 + t] = m + p; o[96 + t] = __ballot_sync(~0u, t & 2); o[128 + t] = __reduce_add_sync(~0u, t) + __reduce_max_sync(~0u, (int)-t) + __reduce_min_sync(~0u, 5u + t) * 1000; o[160 + t] = __reduce_xor_sync(~0u, 1u << t % 7) | __reduce_or_sync(~0u, 1u << t % 9) << 16; o[192 + t] = __reduce_and_sync(~0u, ~(1u << t / 4)); o[224 + t] = __reduce_max_sync(~0u, (unsigned)-t); o[256 + t] = __match_any_sync(~0u, (double)(t / 8));
}
__global__ void half_masks(int* o) {  // two halves of the warp with masks of their own, different numbers of operations
  int t = threadIdx.x, v = t;
  if (t < 16) { for (int d = 8; d; d >>= 1) v += __shfl_xor_sync(0x0000ffffu, v, d); } else { v = __shfl_sync(0xffff0000u, v, 20); v += __popc(__ballot_sync(0xffff0000u, t & 1)); v = __any_sync(0xffff0000u, t == 31) ? v : -1; }
  __syncwarp();
  o[t] = v + __shfl_xor_sync(~0u, v, 16) * 1000;
}
__global__ void partial(int* o, int n) {  // 20 lanes in the block's last warp
  int t = threadIdx.x; unsigned m = __ballot_sync(~0u, t < n);
  if (t < n) { int v = t; for (int d = 16; d; d >>= 1) { int u = __shfl_down_sync(m, v, d); if ((t & 31) + d < 32 && (m >> ((t & 31) + d) & 1)) v += u; } o[t] = __shfl_sync(m, v, 0); }
}
__global__ void aggregated(int* counter, int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; bool keep = i < n && in[i] > 0; unsigned m = __ballot_sync(~0u, keep); int lane = threadIdx.x & 31, base = 0;
  if (lane == 0) base = atomicAdd(counter, __popc(m)); base = __shfl_sync(~0u, base, 0); if (keep) out[base + __popc(m & ((1u << lane) - 1))] = in[i];
}
__global__ void scan_warps(const int* in, int* out, int n) {
  __shared__ int sums[32]; int t = threadIdx.x, lane = t & 31, w = t >> 5, v = t < n ? in[t] : 0;
  #pragma unroll
  for (int d = 1; d < 32; d <<= 1) { int u = __shfl_up_sync(0xffffffff, v, d); if (lane >= d) v += u; }
  if (lane == 31) sums[w] = v; __syncthreads();
  if (w == 0) { int s = lane < blockDim.x / 32 ? sums[lane] : 0; for (int d = 1; d < 32; d <<= 1) { int u = __shfl_up_sync(0xffffffff, s, d); if (lane >= d) s += u; } sums[lane] = s; } __syncthreads();
  if (w > 0) v += sums[w - 1]; if (t < n) out[t] = v;
}
__global__ void bitonic(int* o, const int* in) { int t = threadIdx.x, v = in[t]; for (int k = 2; k <= 32; k *= 2) for (int j = k / 2; j > 0; j /= 2) { int u = __shfl_xor_sync(~0u, v, j); bool up = (t & k) == 0, low = (t & j) == 0; v = (up == low) ? min(v, u) : max(v, u); } o[t] = v; }
__global__ void broadcast_varied(int* o) { int t = threadIdx.x, v = t * t; int s = 0; for (int i = 0; i < 32; ++i) { int u = __shfl_sync(~0u, v, i); if (u % 3 == t % 3) s += u; } o[t] = s; }
__global__ void asms(unsigned* o) { unsigned lane, lt, eq; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt)); asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(eq)); int t = threadIdx.x; unsigned bf, r; asm("bfe.u32 %0, %1, 4, 8;" : "=r"(bf) : "r"(t * 1000)); asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(t), "r"(7), "r"(12)); o[t] = lane; o[64 + t] = lt; o[128 + t] = eq; o[192 + t] = bf; o[256 + t] = r; }
int main() {
  { std::vector<int> w(576), v(64); for (int t = 0; t < 64; ++t) v[t] = 3 * t + 1; for (int t = 0; t < 64; ++t) { int l = t & 31, b = t - l; auto V = [&](int lane) { return v[b + lane]; }; w[t] = V(l / 8 * 8 + (t + 5) % 8); w[64 + t] = V(31); w[128 + t] = l % 8 >= 3 ? V(l - 3) : V(l); w[192 + t] = l % 16 + 3 < 16 ? V(l + 3) : V(l); w[256 + t] = V(l ^ 9); { int s = l ^ 6; w[320 + t] = s < (l / 4 + 1) * 4 ? V(s) : V(l); } w[384 + t] = V(3); w[448 + t] = V(l); w[512 + t] = l == 0 ? V(31) : V(l); } int* o = device<int>(576); widths<<<1, 64>>>(o); expect("widths", o, w); }
  { std::vector<double> w(256); for (int t = 0; t < 32; ++t) { w[t] = 1.5; w[32 + t] = (double)((long long)(t < 31 ? t + 1 : t) << 40); w[64 + t] = -(t ^ 1); w[96 + t] = (unsigned char)((t >= 2 ? t - 2 : t) + 250); w[128 + t] = -(31.0 - t); w[160 + t] = (t ^ 16) * 0.25; w[192 + t] = t ^ 3; w[224 + t] = (t + 1) % 32 % 3 == 0; } w[128 + 31] = 0.0; double* o = device<double>(256); kinds<<<1, 32>>>(o); expect("kinds", o, w); }
  { std::vector<unsigned> w(288); for (int t = 0; t < 32; ++t) { unsigned m = 0, q = 0; for (int u = 0; u < 32; ++u) { m |= (unsigned)(u % 5 == t % 5) << u; q |= (unsigned)(u / 8 == t / 8) << u; } w[t] = m; w[32 + t] = ~0u; w[64 + t] = 0; w[96 + t] = 0xcccccccc; w[128 + t] = 496 + 0 + 5000; unsigned x = 0, r = 0; for (int u = 0; u < 32; ++u) { x ^= 1u << u % 7; r |= 1u << u % 9; } w[160 + t] = x | r << 16; w[192 + t] = ~0xffu; w[224 + t] = ~0u; w[256 + t] = q; } unsigned* o = device<unsigned>(288); votes<<<1, 32>>>(o); expect("votes", o, w); }
  { std::vector<int> w(32), v(32); for (int t = 0; t < 32; ++t) v[t] = t < 16 ? 120 : 28; for (int t = 0; t < 32; ++t) w[t] = v[t] + v[t ^ 16] * 1000; int* o = device<int>(32); half_masks<<<1, 32>>>(o); expect("half_masks", o, w); }
  { int n = 50; std::vector<int> w(64); for (int t = 0; t < n; ++t) { int s = 0; for (int u = t / 32 * 32; u < std::min(n, t / 32 * 32 + 32); ++u) s += u; w[t] = s; } int* o = device<int>(64); partial<<<1, 64>>>(o, n); expect("partial", o, w); }
  { int n = 150; std::vector<int> in(n); int count = 0; long sum = 0; for (int i = 0; i < n; ++i) { in[i] = i * 37 % 19 - 9; if (in[i] > 0) ++count, sum += in[i]; } int* c = device<int>(1); int* o = device<int>(n); aggregated<<<2, 96>>>(c, o, device(in), n); expect("aggregated", c, std::vector<int>{count}); std::vector<int> g(n); cudaMemcpy(g.data(), o, n * 4, cudaMemcpyDeviceToHost); long s2 = 0; for (int i = 0; i < count; ++i) s2 += g[i] > 0 ? g[i] : -1000000; if (s2 != sum) { std::printf("FAIL aggregated sum\n"); ++checks_failed; } }
  { int n = 150; std::vector<int> in(n), w(n); int s = 0; for (int i = 0; i < n; ++i) { in[i] = i % 7 - 2; w[i] = s += in[i]; } int* o = device<int>(n); scan_warps<<<1, 160>>>(device(in), o, n); expect("scan_warps", o, w); }
  { std::vector<int> in(32), w; for (int i = 0; i < 32; ++i) in[i] = i * 29 % 37 - 11; w = in; std::sort(w.begin(), w.end()); int* o = device<int>(32); bitonic<<<1, 32>>>(o, device(in)); expect("bitonic", o, w); }
  { std::vector<int> w(32); for (int t = 0; t < 32; ++t) for (int i = 0; i < 32; ++i) if (i * i % 3 == t % 3) w[t] += i * i; int* o = device<int>(32); broadcast_varied<<<1, 32>>>(o); expect("broadcast", o, w); }
  { std::vector<unsigned> w(320); for (unsigned t = 0; t < 64; ++t) { w[t] = t % 32; w[64 + t] = (1u << t % 32) - 1; w[128 + t] = ~((1u << t % 32) - 1); w[192 + t] = t * 1000 >> 4 & 255; w[256 + t] = t ^ 7 ^ 12; } unsigned* o = device<unsigned>(320); asms<<<1, 64>>>(o); expect("asms", o, w); }
  return done("warps");
}
