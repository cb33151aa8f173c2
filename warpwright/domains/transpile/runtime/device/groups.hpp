// Cooperative groups on fibers: the block, tiles of a warp, and the lanes that are active together.
namespace cooperative_groups {
struct thread_group {
  unsigned mask = 0xffffffffu, first = 0, count = 32;  // lanes of the warp that belong to the group
  bool whole_block = false;
  unsigned num_threads() const { return whole_block ? (unsigned)ww::the_block->launch->threads() : count; }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const { return whole_block ? ww::self->linear : (unsigned)__builtin_popcount(mask & ((1u << ww::self->lane) - 1)); }
  void sync() const { if (whole_block) ww::sync_threads(0); else ww::sync_warp(mask); }
};
struct thread_block : thread_group {
  thread_block() { whole_block = true; }
  static dim3 group_index() { return ww::the_block->index; }
  static dim3 thread_index() { return ww::self->thread; }
  static dim3 group_dim() { return ww::the_block->launch->block; }
  static dim3 dim_threads() { return ww::the_block->launch->block; }
};
struct lane_group : thread_group {
  unsigned lane_of(unsigned rank) const { unsigned left = mask; for (unsigned i = 0; i < rank && left; ++i) left &= left - 1; return left ? (unsigned)__builtin_ctz(left) : ww::self->lane; }
  template <class T> T shfl(T v, int rank) const { return ww::shuffle(mask, v, lane_of((unsigned)rank % count)); }
  template <class T> T shfl_down(T v, unsigned d) const { const unsigned r = thread_rank(); return ww::shuffle(mask, v, lane_of(r + d < count ? r + d : r)); }
  template <class T> T shfl_up(T v, unsigned d) const { const unsigned r = thread_rank(); return ww::shuffle(mask, v, lane_of(r >= d ? r - d : r)); }
  template <class T> T shfl_xor(T v, unsigned b) const { const unsigned r = thread_rank(); return ww::shuffle(mask, v, lane_of((r ^ b) < count ? r ^ b : r)); }
  int any(int p) const { return (__ballot_sync(mask, p) & mask) != 0; }
  int all(int p) const { return (__ballot_sync(mask, !p) & mask) == 0; }
  unsigned ballot(int p) const { return (__ballot_sync(mask, p) & mask) >> first; }
  template <class T> unsigned match_any(T v) const { return (__match_any_sync(mask, v) & mask) >> first; }
};
template <unsigned N, class Parent = void> struct thread_block_tile : lane_group {
  thread_block_tile() {
    count = N;
    first = ww::self->lane / N * N;
    mask = N == 32 ? 0xffffffffu : ((1u << (N & 31)) - 1) << first;
  }
  unsigned meta_group_rank() const { return ww::self->linear / N; }
  unsigned meta_group_size() const { return ((unsigned)ww::the_block->launch->threads() + N - 1) / N; }
};
struct coalesced_group : lane_group {
  coalesced_group() { mask = __activemask(); count = (unsigned)__builtin_popcount(mask); first = 0; }
};
struct grid_group {
  unsigned long long thread_rank() const {
    const ww::Block& b = *ww::the_block;
    return ((unsigned long long)(b.index.z * gridDim.y + b.index.y) * gridDim.x + b.index.x) * (unsigned)b.launch->threads() + ww::self->linear;
  }
  unsigned long long size() const { return (unsigned long long)ww::the_block->launch->blocks() * (unsigned)ww::the_block->launch->threads(); }
  unsigned long long num_threads() const { return size(); }
  bool is_valid() const { return ww::the_block->launch->blocks() == 1; }
  void sync() const {
    if (ww::the_block->launch->blocks() != 1) { ww::fail("grid.sync() over more than one block is not offered"); }
    ww::sync_threads(0);
  }
};
static inline thread_block this_thread_block() { return {}; }
static inline grid_group this_grid() { return {}; }
static inline coalesced_group coalesced_threads() { return {}; }
template <unsigned N, class G> static inline thread_block_tile<N> tiled_partition(const G&) { static_assert(N <= 32, "tiles of at most 32 threads"); return {}; }
template <class G> static inline lane_group tiled_partition(const G&, unsigned n) {
  lane_group g;
  g.count = n; g.first = ww::self->lane / n * n; g.mask = n >= 32 ? 0xffffffffu : ((1u << n) - 1) << g.first;
  return g;
}
template <class G> static inline void sync(const G& g) { g.sync(); }
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class G, class T, class F> static inline T reduce(const G& g, T v, F f) { return ww::warp_reduce(g.mask, v, f); }
template <class G> static inline void wait(const G& g) { g.sync(); }
template <class G, class T> static inline void memcpy_async(const G& g, T* to, const T* from, size_t bytes) {
  if (g.thread_rank() == 0) std::memcpy(to, from, bytes);
}
}  // namespace cooperative_groups
