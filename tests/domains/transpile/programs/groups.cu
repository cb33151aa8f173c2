#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
template <int N> __global__ void tiles(int* o) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<N>(block);
  int t = block.thread_rank(), v = t * t % 31;
  int s = v;
  for (int d = tile.size() / 2; d > 0; d /= 2) s += tile.shfl_down(s, d);
  int first = tile.shfl(s, 0), up = tile.shfl_up(v, 1), x = tile.shfl_xor(v, N / 2);
  unsigned b = tile.ballot(v & 1);
  o[t] = first * 1000 + up * 7 + x * 3 + (int)b % 97 + tile.meta_group_rank() * 11 + tile.thread_rank() + (tile.any(v == 30) ? 5000 : 0) + (tile.all(v < 29) ? 9000 : 0) + tile.meta_group_size();
}
__global__ void sub(int* o) {  // tile of a tile
  auto w = cg::tiled_partition<32>(cg::this_thread_block());
  auto q = cg::tiled_partition<4>(w);
  o[threadIdx.x] = cg::reduce(q, (int)threadIdx.x, cg::plus<int>()) * 100 + q.meta_group_rank() * 10 + q.meta_group_size() + cg::reduce(w, (int)threadIdx.x, cg::greater<int>());
}
__global__ void scans(int* o) {
  auto w = cg::tiled_partition<16>(cg::this_thread_block());
  int v = threadIdx.x % 5 + 1;
  o[threadIdx.x] = cg::inclusive_scan(w, v) * 1000 + cg::exclusive_scan(w, v, cg::plus<int>());
}
__global__ void labels(int* o) {
  auto w = cg::tiled_partition<32>(cg::this_thread_block());
  auto g = cg::labeled_partition(w, (int)(threadIdx.x * 5 % 3));
  auto h = cg::binary_partition(w, threadIdx.x % 32 < 11);
  o[threadIdx.x] = g.size() * 1000 + g.thread_rank() * 100 + cg::reduce(g, (int)threadIdx.x, cg::less<int>()) + h.size() * 100000 + h.thread_rank() * 10000000;
}
__global__ void part_block(int* o) {  // 3-d block of 40 threads: ranks and partial warp
  auto b = cg::this_thread_block();
  auto t8 = cg::tiled_partition<8>(b);
  int r = b.thread_rank();
  int s = cg::reduce(t8, r, cg::plus<int>());
  b.sync();
  o[r] = s * 100 + b.thread_index().y * 10 + b.group_index().x + b.size() * 100000;
}
__global__ void coalesced(int* o, int* counter) {
  int t = threadIdx.x;
  o[t] = -1;
  if (t % 3 == 1) {
    auto g = cg::coalesced_threads();
    int base = 0;
    if (g.thread_rank() == 0) base = atomicAdd(counter, (int)g.size());
    base = g.shfl(base, 0);
    o[t] = (base + (int)g.thread_rank()) * 0 + (int)g.thread_rank() * 100 + g.size();
  }
}
int main() {
  auto tile_want = [](int n, int threads) { std::vector<int> w(threads), v(threads); for (int t = 0; t < threads; ++t) v[t] = t * t % 31;
    for (int t = 0; t < threads; ++t) { int base = t / n * n, r = t % n; std::vector<int> s(v.begin() + base, v.begin() + base + n); for (int d = n / 2; d; d /= 2) { auto u = s; for (int l = 0; l < n; ++l) s[l] += u[l + d < n ? l + d : l]; }
      unsigned b = 0; bool any = false, all = true; for (int l = 0; l < n; ++l) { b |= (unsigned)(v[base + l] & 1) << l; any |= v[base + l] == 30; all &= v[base + l] < 29; }
      w[t] = s[0] * 1000 + v[r ? t - 1 : t] * 7 + v[base + (r ^ (n / 2))] * 3 + (int)b % 97 + t / n * 11 + r + (any ? 5000 : 0) + (all ? 9000 : 0) + threads / n; } return w; };
  { int* o = device<int>(96); tiles<8><<<1, 96>>>(o); expect("tile 8", o, tile_want(8, 96)); }
  { int* o = device<int>(96); tiles<4><<<1, 40>>>(o); expect("tile 4", o, tile_want(4, 40)); }
  { int* o = device<int>(96); tiles<32><<<1, 96>>>(o); expect("tile 32", o, tile_want(32, 96)); }
  { int* o = device<int>(96); tiles<16><<<1, 48>>>(o); expect("tile 16", o, tile_want(16, 48)); }
  { int* o = device<int>(64); sub<<<1, 64>>>(o); std::vector<int> w(64); for (int t = 0; t < 64; ++t) w[t] = (t / 4 * 16 + 6) * 100 + t % 32 / 4 * 10 + 8 + t / 32 * 32 + 31; expect("sub", o, w); }
  { int* o = device<int>(64); scans<<<1, 64>>>(o); std::vector<int> w(64); for (int t = 0; t < 64; ++t) { int s = 0, e = 0; for (int u = t / 16 * 16; u <= t; ++u) { e = s; s += u % 5 + 1; } w[t] = s * 1000 + e; } expect("scans", o, w); }
  { int* o = device<int>(64); labels<<<1, 64>>>(o); std::vector<int> w(64); for (int t = 0; t < 64; ++t) { int size = 0, rank = 0, least = 1000, hs = 0, hr = 0; for (int u = t / 32 * 32; u < t / 32 * 32 + 32; ++u) { if (u * 5 % 3 == t * 5 % 3) { ++size; rank += u < t; least = std::min(least, u); } if ((u % 32 < 11) == (t % 32 < 11)) { ++hs; hr += u < t; } } w[t] = size * 1000 + rank * 100 + least + hs * 100000 + hr * 10000000; } expect("labels", o, w); }
  { int* o = device<int>(40); part_block<<<1, dim3(5, 4, 2)>>>(o); std::vector<int> w(40); for (int t = 0; t < 40; ++t) w[t] = (t / 8 * 64 + 28) * 100 + t / 5 % 4 * 10 + 40 * 100000; expect("part_block", o, w); }
  { int* o = device<int>(64); int* c = device<int>(1); coalesced<<<1, 64>>>(o, c); std::vector<int> w(64); for (int t = 0; t < 64; ++t) { int size = 0, rank = 0; for (int u = t / 32 * 32; u < t / 32 * 32 + 32; ++u) if (u % 3 == 1) { ++size; rank += u < t; } w[t] = t % 3 == 1 ? rank * 100 + size : -1; } expect("coalesced", o, w); expect("coalesced count", c, std::vector<int>{21}); }
  return done("groups");
}
