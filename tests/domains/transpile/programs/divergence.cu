#include "check.h"
__global__ void loops(int* o) {  // lanes leave a loop at different turns, then meet
  int lane = threadIdx.x & 31, s = 0;
  for (int i = 0; i <= threadIdx.x % 7; ++i) { if (i == 3 && lane % 2) continue; s += i * i + 1; if (s > 40 && lane > 20) break; }
  int other = __shfl_xor_sync(0xffffffffu, s, 1);
  o[threadIdx.x] = s * 1000 + other;
}
__global__ void early(int* o, int n) {  // exited threads do not count at barriers
  __shared__ int s[64];
  int t = threadIdx.x;
  if (t >= n) return;
  s[t] = t * 3;
  __syncthreads();
  int v = s[n - 1 - t];
  __syncthreads();
  s[t] = v + 1;
  __syncthreads();
  if (t % 2) return;
  o[t] = s[(t + 2) % n];
  __syncthreads();
  o[t] += 100;
}
__global__ void masked(int* o) {
  int lane = threadIdx.x;
  bool c = (lane * 7 % 5) < 2;
  unsigned m = __ballot_sync(~0u, c);
  if (c) {
    int leader = __ffs(m) - 1;
    int v = lane + 10;
    for (int d = 16; d; d >>= 1) { int w = __shfl_down_sync(m, v, d); if (lane + d < 32 && (m >> (lane + d) & 1)) v = v > w ? v : w; }
    o[lane] = __shfl_sync(m, v, leader) + (__any_sync(m, lane == leader) ? 1000 : 0) + (__all_sync(m, c) ? 2000 : 0);
  } else {
    o[lane] = __popc(__ballot_sync(~m, lane & 1));
  }
}
__global__ void until_none(int* o) {
  int v = threadIdx.x * 37 % 23, turns = 0;
  do { if (v > 0) v -= 3; ++turns; } while (__any_sync(~0u, v > 0));
  o[threadIdx.x] = turns * 100 + v;
}
__global__ void counts(int* o) {
  int t = threadIdx.x, acc = 0;
  for (int i = 0; i < 5; ++i) {
    int c = __syncthreads_count(t % (i + 2) == 0);
    int any = __syncthreads_or(t == 47 && i == 3), all = __syncthreads_and(t < 40 + i * 2);
    acc = acc * 7 + c + any * 3 + all * 5;
    if (any) break;
  }
  o[t] = acc;
}
__global__ void fall(int* o) {
  int lane = threadIdx.x, v = lane;
  switch (lane % 4) {
    case 0: v += 10;
    case 1: v += 100; break;
    case 2: v = -v; break;
    default: v *= 2;
  }
  int w = __shfl_up_sync(~0u, v, 3);
  o[lane] = w;
}
__global__ void two_sided(int* o) {  // both warps reach a barrier in their own branch, each the same number of times
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  int v;
  if (t < 32) { v = s[63 - t]; __syncwarp(); v += __shfl_sync(~0u, v, 0); } else { v = s[63 - t] * 2; v += __reduce_add_sync(~0u, 1u); }
  __syncthreads();
  s[t] = v;
  __syncthreads();
  o[t] = s[t ^ 33];
}
__global__ void lane_loop_sync(int* o) {  // each warp a different number of turns with warp syncs
  int t = threadIdx.x, w = t / 32, v = t;
  for (int i = 0; i < w * 2 + 1; ++i) v = __shfl_sync(~0u, v, (t + 1) & 31) + i;
  o[t] = v;
}
int main() {
  { std::vector<int> s(64), w(64); for (int t = 0; t < 64; ++t) { int lane = t & 31; for (int i = 0; i <= t % 7; ++i) { if (i == 3 && lane % 2) continue; s[t] += i * i + 1; if (s[t] > 40 && lane > 20) break; } }
    for (int t = 0; t < 64; ++t) w[t] = s[t] * 1000 + s[t ^ 1]; int* o = device<int>(64); loops<<<1, 64>>>(o); expect("loops", o, w); }
  { int n = 50; std::vector<int> w(64); std::vector<int> s(n); for (int t = 0; t < n; ++t) s[t] = (n - 1 - t) * 3 + 1; for (int t = 0; t < n; t += 2) w[t] = s[(t + 2) % n] + 100; int* o = device<int>(64); early<<<1, 64>>>(o, n); expect("early", o, w); }
  { std::vector<int> w(32); int best = 0, odd = 0; for (int l = 0; l < 32; ++l) { if ((l * 7 % 5) < 2) best = l + 10; else odd += l & 1; }
    // a tree by shuffles over a sparse mask: what the leader ends with, lane by lane
    std::vector<int> v(32); unsigned m = 0; for (int l = 0; l < 32; ++l) { v[l] = l + 10; if ((l * 7 % 5) < 2) m |= 1u << l; }
    for (int d = 16; d; d >>= 1) { auto u = v; for (int l = 0; l < 32; ++l) if ((m >> l & 1) && l + d < 32 && (m >> (l + d) & 1)) v[l] = std::max(u[l], u[l + d]); }
    for (int l = 0; l < 32; ++l) w[l] = (m >> l & 1) ? v[__builtin_ctz(m)] + 3000 : odd; int* o = device<int>(32); masked<<<1, 32>>>(o); expect("masked", o, w); (void)best; }
  { std::vector<int> w(32), v(32); int turns = 0; for (int l = 0; l < 32; ++l) v[l] = l * 37 % 23; bool any; do { any = false; for (auto& x : v) { if (x > 0) x -= 3; any |= x > 0; } ++turns; } while (any); for (int l = 0; l < 32; ++l) w[l] = turns * 100 + v[l]; int* o = device<int>(32); until_none<<<1, 32>>>(o); expect("until_none", o, w); }
  { int acc = 0; for (int i = 0; i < 5; ++i) { int c = 0, all = 1; for (int t = 0; t < 48; ++t) { c += t % (i + 2) == 0; all &= t < 40 + i * 2; } int any = i == 3; acc = acc * 7 + c + any * 3 + all * 5; if (any) break; } int* o = device<int>(48); counts<<<1, 48>>>(o); expect("counts", o, std::vector<int>(48, acc)); }
  { std::vector<int> v(32), w(32); for (int l = 0; l < 32; ++l) v[l] = l % 4 == 0 ? l + 110 : l % 4 == 1 ? l + 100 : l % 4 == 2 ? -l : 2 * l; for (int l = 0; l < 32; ++l) w[l] = l < 3 ? v[l] : v[l - 3]; int* o = device<int>(32); fall<<<1, 32>>>(o); expect("fall", o, w); }
  { std::vector<int> v(64), w(64); for (int t = 0; t < 64; ++t) v[t] = t < 32 ? 63 - t + 63 : (63 - t) * 2 + 32; for (int t = 0; t < 64; ++t) w[t] = v[t ^ 33]; int* o = device<int>(64); two_sided<<<1, 64>>>(o); expect("two_sided", o, w); }
  { std::vector<int> w(96); for (int t = 0; t < 96; ++t) { int wp = t / 32; std::vector<int> v(32), u; for (int l = 0; l < 32; ++l) v[l] = wp * 32 + l; for (int i = 0; i < wp * 2 + 1; ++i) { u = v; for (int l = 0; l < 32; ++l) v[l] = u[(l + 1) & 31] + i; } w[t] = v[t & 31]; } int* o = device<int>(96); lane_loop_sync<<<1, 96>>>(o); expect("lane_loop_sync", o, w); }
  return done("divergence");
}
