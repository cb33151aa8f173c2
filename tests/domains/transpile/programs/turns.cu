#include "check.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// Each lane notes, turn by turn, which lanes were together. Lanes that skip a turn, or part in it, are together again in the next.
__global__ void skipped(unsigned* o) { int l = threadIdx.x; for (int i = 0; i < 4; ++i) { if ((l >> i) & 1) continue; o[i * 32 + l] = __activemask(); } }
__global__ void skipped_lines(unsigned* o) {
  int l = threadIdx.x;
  for (int i = 0; i < 4; ++i) {
    if ((l >> i) & 1)
      continue;
    o[i * 32 + l] = __activemask();
  }
}
__global__ void in_branch(unsigned* o) { int l = threadIdx.x; for (int i = 0; i < 4; ++i) if (!((l >> i) & 1)) o[i * 32 + l] = __activemask(); }
__global__ void by_while(unsigned* o) { int l = threadIdx.x, i = -1; while (++i < 4) { if ((l >> i) & 1) continue; o[i * 32 + l] = __ballot(1); } }
__global__ void by_do(unsigned* o) { int l = threadIdx.x, i = 0; do { if ((l >> i) & 1) continue; auto g = cg::coalesced_threads(); o[i * 32 + l] = g.ballot(1) | g.size() << 16; } while (++i < 4); }
__global__ void nested(unsigned* o) { int l = threadIdx.x; for (int i = 0; i < 2; ++i) for (int j = 0; j < 2; ++j) { int b = 2 * i + j; if ((l >> b) & 1) continue; o[b * 32 + l] = __activemask(); } }
__global__ void uneven(unsigned* o) {  // inner loops of different lengths: together again after them
  int l = threadIdx.x;
  for (int i = 0; i < 2; ++i) {
    unsigned last = 0;
    for (int j = 0; j <= l % (2 + i); ++j) last = __activemask();
    o[i * 64 + l] = last;
    if (l % 5 == i) continue;
    o[i * 64 + 32 + l] = __activemask();
  }
}
__device__ __noinline__ unsigned asked(int x) { unsigned m = __activemask(); return m ^ (x & 0); }
__device__ __noinline__ unsigned deeper(int x) { return asked(x) + 0 * x; }
__global__ void two_calls(unsigned* o) { int l = threadIdx.x; if (l % 3 == 0) o[l] = asked(l); else o[l] = asked(l + 1); o[32 + l] = asked(l); o[64 + l] = l < 7 ? deeper(1) : deeper(2); }
__global__ void calls_in_loop(unsigned* o) { int l = threadIdx.x; for (int i = 0; i < 4; ++i) { if ((l >> i) & 1) continue; o[i * 32 + l] = deeper(i); } }
struct Walker { unsigned seen; __device__ __noinline__ void look(int) { seen = __activemask(); } };
__global__ void method_calls(unsigned* o) { int l = threadIdx.x; Walker w[2]; if (l & 1) w[l & 1].look(1); else { w[l & 1].look(2); } o[l] = w[l & 1].seen; }
__device__ __noinline__ int summed(int v) { for (int d = 16; d; d >>= 1) v += __shfl_xor(v, d); return v; }
__global__ void shuffled(int* o) { int l = threadIdx.x % 32, h = threadIdx.x / 32; int a = 0; for (int i = 0; i < 3; ++i) { if (h == i) continue; a += summed(l + i); } o[threadIdx.x] = a; }
__global__ void left(unsigned* o) { int l = threadIdx.x, n = 0; while (true) { if (l < n * 4) break; if (l % 2 == n % 2) { ++n; continue; } o[n * 32 + l] = __activemask(); ++n; if (n == 4) break; } o[127 - l % 2 * 0] = 0; }
__device__ unsigned again(int n, int l) { return n == 0 ? __activemask() : l < 16 ? again(n - 1, l) : again(n - 1, l); }
__global__ void recursive(unsigned* o) { int l = threadIdx.x; o[l] = again(2, l); o[32 + l] = again(0, l); }
template <class F> __device__ unsigned through(F f) { return f(); }
__global__ void lambdas(unsigned* o) { int l = threadIdx.x; for (int i = 0; i < 4; ++i) { if ((l >> i) & 1) continue; o[i * 32 + l] = through([&] { return __activemask(); }); } }
int main() {
  std::vector<unsigned> w(128), t(128); for (int i = 0; i < 4; ++i) { unsigned m = 0; for (int l = 0; l < 32; ++l) if (!((l >> i) & 1)) m |= 1u << l; for (int l = 0; l < 32; ++l) if (!((l >> i) & 1)) { w[i * 32 + l] = m; t[i * 32 + l] = 0xffff | 16 << 16; } }
#define RUN(K, WANT) { unsigned* o = device<unsigned>(128); K<<<1, 32>>>(o); expect(#K, o, WANT); }
  RUN(skipped, w) RUN(skipped_lines, w) RUN(in_branch, w) RUN(by_while, w) RUN(by_do, t) RUN(nested, w) RUN(calls_in_loop, w) RUN(lambdas, w)
  { std::vector<unsigned> u(128); for (int i = 0; i < 2; ++i) { unsigned rest = 0; for (int l = 0; l < 32; ++l) if (l % 5 != i) rest |= 1u << l; for (int l = 0; l < 32; ++l) { unsigned m = 0; for (int k = 0; k < 32; ++k) if (k % (2 + i) >= l % (2 + i)) m |= 1u << k; u[i * 64 + l] = m; if (l % 5 != i) u[i * 64 + 32 + l] = rest; } } RUN(uneven, u) }
  { std::vector<unsigned> u(96); unsigned a = 0; for (int l = 0; l < 32; l += 3) a |= 1u << l; for (int l = 0; l < 32; ++l) { u[l] = l % 3 ? ~a : a; u[32 + l] = ~0u; u[64 + l] = l < 7 ? 127 : ~127u; } RUN(two_calls, u) }
  { std::vector<unsigned> u(32); for (int l = 0; l < 32; ++l) u[l] = l & 1 ? 0xaaaaaaaa : 0x55555555; RUN(method_calls, u) }
  { std::vector<int> u(96); for (int h = 0; h < 3; ++h) { int a = 0; for (int i = 0; i < 3; ++i) if (i != h) a += 496 + 32 * i; for (int l = 0; l < 32; ++l) u[h * 32 + l] = a; } int* o = device<int>(96); shuffled<<<1, 96>>>(o); expect("shuffled", o, u); }
  { std::vector<unsigned> u(128); for (int n = 0; n < 4; ++n) { unsigned m = 0; for (int l = 0; l < 32; ++l) if (l >= n * 4 && l % 2 != n % 2) m |= 1u << l; for (int l = 0; l < 32; ++l) if (m >> l & 1) u[n * 32 + l] = m; } u[127] = 0; RUN(left, u) }
  { std::vector<unsigned> u(64); for (int l = 0; l < 32; ++l) { u[l] = l < 16 ? 0xffff : 0xffff0000; u[32 + l] = ~0u; } RUN(recursive, u) }
  return done("turns");
}
