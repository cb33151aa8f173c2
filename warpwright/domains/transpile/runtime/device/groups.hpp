// Cooperative groups on fibers, where their operations were not written out (frontend/groups.py): blocks, tiles, the lanes that are active together,
// their partitions, and the grid. A block, a tile and the grid hold nothing: every thread knows which is its own.
namespace cooperative_groups {
namespace details {
static inline unsigned tile_mask(unsigned n) { return n >= 32 ? 0xffffffffu : ((1u << n) - 1) << (ww::self->lane / n * n); }
static inline unsigned lane_of(unsigned mask, unsigned rank) {
  unsigned left = mask;
  for (unsigned i = 0; i < rank && left; ++i) left &= left - 1;
  return left ? (unsigned)__builtin_ctz(left) : ww::self->lane;
}
static inline unsigned packed(unsigned mask, unsigned lanes) {  // bit i: the group's thread of rank i
  unsigned r = 0;
  for (unsigned rank = 0; mask; mask &= mask - 1, ++rank) if (lanes >> __builtin_ctz(mask) & 1) r |= 1u << rank;
  return r;
}
}  // namespace details

template <class Self> struct lanes_of_group {  // Self::lanes() is its mask
  unsigned mask_() const { return static_cast<const Self*>(this)->lanes(); }
  unsigned num_threads() const { return (unsigned)__builtin_popcount(mask_()); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const { return (unsigned)__builtin_popcount(mask_() & ((1u << ww::self->lane) - 1)); }
  void sync() const { ww::sync_warp(mask_()); }
  template <class T> T shfl(T v, int rank) const { return ww::shuffle(mask_(), v, details::lane_of(mask_(), (unsigned)rank % num_threads())); }
  template <class T> T shfl_down(T v, unsigned d) const { const unsigned r = thread_rank(), m = mask_(); return ww::shuffle(m, v, details::lane_of(m, r + d < num_threads() ? r + d : r)); }
  template <class T> T shfl_up(T v, unsigned d) const { const unsigned r = thread_rank(), m = mask_(); return ww::shuffle(m, v, details::lane_of(m, r >= d ? r - d : r)); }
  template <class T> T shfl_xor(T v, unsigned b) const { const unsigned r = thread_rank(), m = mask_(); return ww::shuffle(m, v, details::lane_of(m, (r ^ b) < num_threads() ? r ^ b : r)); }
  int any(int p) const { const unsigned m = mask_(); return (__ballot_sync(m, p) & m) != 0; }
  int all(int p) const { const unsigned m = mask_(); return (__ballot_sync(m, !p) & m) == 0; }
  unsigned ballot(int p) const { const unsigned m = mask_(); return details::packed(m, __ballot_sync(m, p)); }
  template <class T> unsigned match_any(T v) const { const unsigned m = mask_(); return details::packed(m, __match_any_sync(m, v)); }
  template <class T> unsigned match_all(T v, int& p) const { const unsigned m = mask_(), same = __match_any_sync(m, v) & m; p = same == m; return p ? details::packed(m, m) : 0; }
};
struct thread_block {
  static unsigned num_threads() { return (unsigned)ww::the_block->launch->threads(); }
  static unsigned size() { return num_threads(); }
  static unsigned thread_rank() { return ww::self->linear; }
  static void sync() { ww::sync_threads(0); }
  static dim3 group_index() { return ww::the_block->index; }
  static dim3 thread_index() { return ww::self->thread; }
  static dim3 group_dim() { return ww::the_block->launch->block; }
  static dim3 dim_threads() { return ww::the_block->launch->block; }
  static unsigned get_type() { return 0; }
};
struct coalesced_group : lanes_of_group<coalesced_group> {
  unsigned mask = 0, meta_rank = 0, meta_size = 1;
  unsigned lanes() const { return mask; }
  unsigned meta_group_rank() const { return meta_rank; }
  unsigned meta_group_size() const { return meta_size; }
};
namespace details {
struct Block { static constexpr unsigned size_ = 0; };
template <unsigned N, class Parent> struct small_tile : lanes_of_group<small_tile<N, Parent>> {
  unsigned lanes() const { return tile_mask(N); }
  static constexpr unsigned num_threads() { return N; }
  static constexpr unsigned size() { return N; }
  static unsigned thread_rank() { return ww::self->linear % N; }
};
template <unsigned N> struct wide_tile {  // several warps, which meet among themselves
  static constexpr unsigned num_threads() { return N; }
  static constexpr unsigned size() { return N; }
  static unsigned thread_rank() { return ww::self->linear % N; }
  static void sync() {
    static thread_local struct { unsigned arrived, turn; } tiles[16];
    auto& mine = tiles[ww::self->linear / N];
    const unsigned turn = mine.turn, first = ww::self->linear / N * N, all = std::min(N, (unsigned)ww::the_block->launch->threads() - first);
    if (++mine.arrived == all) { mine.arrived = 0; ++mine.turn; ++ww::the_block->progress; }
    else while (mine.turn == turn) ww::yield();
  }
  template <class T, class F> static auto offering(T v, F take) {  // take(rank -> value)
    ww::self->value = (unsigned long long)&v;
    const unsigned first = ww::self->linear / N * N;
    sync();
    const auto taken = take([=](unsigned rank) { return *(const T*)ww::the_block->fibers[first + rank].value; });
    sync();
    return taken;
  }
  template <class T> T shfl(T v, unsigned rank) const { return offering(v, [=](auto of) { return of(rank % N); }); }
  int any(int p) const { return offering(p, [](auto of) { int r = 0; for (unsigned i = 0; i < N; ++i) r |= of(i) != 0; return r; }); }
  int all(int p) const { return offering(p, [](auto of) { int r = 1; for (unsigned i = 0; i < N; ++i) r &= of(i) != 0; return r; }); }
};
}  // namespace details
template <unsigned N, class Parent = details::Block> struct thread_block_tile : std::conditional_t<(N > 32), details::wide_tile<N>, details::small_tile<N, Parent>> {
  static_assert((N & (N - 1)) == 0 && N <= 512, "tiles of a power of two");
  thread_block_tile() = default;
  template <class Other> thread_block_tile(const thread_block_tile<N, Other>&) {}
  static constexpr unsigned size_ = N;
  static unsigned meta_group_rank() { return (Parent::size_ ? ww::self->linear % Parent::size_ : ww::self->linear) / N; }
  static unsigned meta_group_size() { return ((Parent::size_ ? Parent::size_ : (unsigned)ww::the_block->launch->threads()) + N - 1) / N; }
};
template <unsigned N, class P = void> struct block_tile_memory {};
struct thread_group : lanes_of_group<thread_group> {  // a group of any kind
  unsigned mask = 0;  // 0: the whole block
  thread_group() = default;
  thread_group(const thread_block&) {}
  thread_group(const coalesced_group& g) : mask(g.mask) {}
  template <unsigned N, class P> thread_group(const thread_block_tile<N, P>& g) : mask(g.lanes()) {}  // of one warp
  unsigned lanes() const { return mask; }
  unsigned num_threads() const { return mask ? (unsigned)__builtin_popcount(mask) : thread_block::num_threads(); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const { return mask ? lanes_of_group::thread_rank() : ww::self->linear; }
  void sync() const { if (mask) ww::sync_warp(mask); else ww::sync_threads(0); }
};
struct grid_group {
  static unsigned long long block_rank() { const ww::Block& b = *ww::the_block; return b.index.x + (unsigned long long)gridDim.x * (b.index.y + (unsigned long long)gridDim.y * b.index.z); }
  static unsigned long long thread_rank() { return block_rank() * (unsigned)ww::the_block->launch->threads() + ww::self->linear; }
  static unsigned long long size() { return (unsigned long long)ww::the_block->launch->blocks() * (unsigned)ww::the_block->launch->threads(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() { return (unsigned long long)ww::the_block->launch->blocks(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return ww::the_block->index; }
  static bool is_valid() { return ww::cooperative() || ww::the_block->launch->blocks() == 1; }
  static void sync() { ww::sync_grid(); }
};
static inline thread_block this_thread_block() { return {}; }
template <class Memory> static inline thread_block this_thread_block(Memory&) { return {}; }
static inline grid_group this_grid() { return {}; }
static inline coalesced_group coalesced_threads() { coalesced_group g; g.mask = ww::converged(); return g; }
template <unsigned N, class P = thread_block> struct tile_of { using type = thread_block_tile<N>; };
template <unsigned N, unsigned M, class P> struct tile_of<N, thread_block_tile<M, P>> { using type = thread_block_tile<N, thread_block_tile<M, P>>; };
template <unsigned N, class G> static inline typename tile_of<N, G>::type tiled_partition(const G&) { return {}; }
template <class G> static inline thread_group tiled_partition(const G&, unsigned n) { thread_group g; g.mask = details::tile_mask(n); return g; }
static inline coalesced_group tiled_partition(const coalesced_group& of, unsigned n) {
  coalesced_group g;
  const unsigned rank = of.thread_rank();
  for (unsigned i = rank / n * n; i < rank / n * n + n && i < of.num_threads(); ++i) g.mask |= 1u << details::lane_of(of.mask, i);
  g.meta_rank = rank / n, g.meta_size = (of.num_threads() + n - 1) / n;
  return g;
}
template <class G, class L> static inline coalesced_group labeled_partition(const G& of, L label) {
  coalesced_group g;
  const unsigned all = of.mask_();
  g.mask = __match_any_sync(all, label) & all;
  const unsigned leaders = __ballot_sync(all, (g.mask & -g.mask) == 1u << ww::self->lane) & all;
  g.meta_rank = (unsigned)__builtin_popcount(leaders & ((g.mask & -g.mask) - 1)), g.meta_size = (unsigned)__builtin_popcount(leaders);
  return g;
}
template <class G> static inline coalesced_group binary_partition(const G& of, bool which) {
  coalesced_group g;
  const unsigned all = of.mask_(), yes = __ballot_sync(all, which) & all;
  g.mask = which ? yes : all & ~yes, g.meta_rank = which ? 1 : 0, g.meta_size = 2;
  return g;
}
template <class G> static inline void sync(const G& g) { g.sync(); }
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
template <unsigned N, class P, class T, class F, class = std::enable_if_t<(N > 32)>> static inline T reduce(const thread_block_tile<N, P>& g, T v, F f) {
  return g.offering(v, [=](auto of) { T r = of(0); for (unsigned i = 1; i < N; ++i) r = f(r, of(i)); return r; });
}
template <class G, class T, class F, class = decltype(std::declval<G>().mask_())> static inline T reduce(const G& g, T v, F f) {  // by pairs, as the lanes of a GPU have it
  const unsigned mask = g.mask_(), all = (unsigned)__builtin_popcount(mask), rank = (unsigned)__builtin_popcount(mask & ((1u << ww::self->lane) - 1));
  for (unsigned d = 1; d < all; d *= 2) {
    const T other = ww::shuffle(mask, v, details::lane_of(mask, rank + d < all ? rank + d : rank));
    if (rank % (2 * d) == 0 && rank + d < all) v = f(v, other);
  }
  return ww::shuffle(mask, v, details::lane_of(mask, 0));
}
template <class G, class T, class F> static inline T inclusive_scan(const G& g, T v, F f) {
  const unsigned mask = g.mask_(), rank = (unsigned)__builtin_popcount(mask & ((1u << ww::self->lane) - 1)), all = (unsigned)__builtin_popcount(mask);
  for (unsigned d = 1; d < all; d *= 2) {
    const T other = ww::shuffle(mask, v, details::lane_of(mask, rank >= d ? rank - d : rank));
    if (rank >= d) v = f(other, v);
  }
  return v;
}
template <class G, class T> static inline T inclusive_scan(const G& g, T v) { return inclusive_scan(g, v, plus<T>()); }
template <class G, class T, class F> static inline T exclusive_scan(const G& g, T v, F f) {
  const T sum = inclusive_scan(g, v, f);
  const unsigned mask = g.mask_(), rank = (unsigned)__builtin_popcount(mask & ((1u << ww::self->lane) - 1));
  const T before = ww::shuffle(mask, sum, details::lane_of(mask, rank ? rank - 1 : 0));
  return rank ? before : T();
}
template <class G, class T> static inline T exclusive_scan(const G& g, T v) { return exclusive_scan(g, v, plus<T>()); }
template <class G, class F> static inline void invoke_one(const G& g, F f) { if (g.thread_rank() == 0) f(); }
template <class G> static inline void wait(const G& g) { g.sync(); }
template <unsigned N = 0, class G> static inline void wait_prior(const G& g) { g.sync(); }
template <class G, class T, class N> static inline void memcpy_async(const G& g, T* to, const T* from, N bytes) {
  if (g.thread_rank() == 0) std::memcpy((void*)to, (const void*)from, (size_t)bytes);
}
}  // namespace cooperative_groups
