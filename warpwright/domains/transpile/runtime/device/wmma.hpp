// Tensor-core fragments as plain loops. A tile lies across the lanes of a warp: lane l has elements l * num_elements and on, by rows. Loads, stores and
// products are one warp's work, as on a GPU: the lane that arrives last does it for all, before any of them goes on.
namespace nvcuda { namespace wmma {
struct matrix_a {}; struct matrix_b {}; struct accumulator {};
struct row_major {}; struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision { struct tf32 {}; }
template <class T> struct stored { using type = T; };
template <> struct stored<precision::tf32> { using type = float; };
template <class Use, int M, int N, int K> struct tile_shape;
template <int M, int N, int K> struct tile_shape<matrix_a, M, N, K> { static constexpr int rows = M, columns = K; };
template <int M, int N, int K> struct tile_shape<matrix_b, M, N, K> { static constexpr int rows = K, columns = N; };
template <int M, int N, int K> struct tile_shape<accumulator, M, N, K> { static constexpr int rows = M, columns = N; };
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
  static constexpr int rows = tile_shape<Use, M, N, K>::rows, columns = tile_shape<Use, M, N, K>::columns, num_elements = rows * columns / 32;
  static_assert(rows * columns % 32 == 0, "the lanes of a warp share the elements of a tile");
  static constexpr int num_storage_elements = num_elements;
  using element_type = typename stored<T>::type;
  using storage_element_type = element_type;
  element_type x[num_elements];
};
// Calls work(lane, what the lane offers) for every live lane, in the lane that arrives last.
template <class Offer, class Work> static inline void as_warp(Offer offer, Work work) {
  ww::Fiber& f = *ww::self;
  ww::Warp& warp = ww::the_block->warps[f.warp];
  ww::Fiber* const lanes = &ww::the_block->fibers[f.warp * 32];
  f.value = (unsigned long long)&offer;  // stays where it is until all are let go
  f.mask = ~0u;
  bool last = (warp.arrived | 1u << f.lane) == warp.live;
  for (unsigned l = 0; last && l < 32; ++l) last = !(warp.live >> l & 1) || lanes[l].mask == ~0u;
  if (last) work([&](auto each) { for (unsigned l = 0; l < 32; ++l) if (warp.live >> l & 1) each((int)l, *(const Offer*)lanes[l].value); });
  ww::sync_warp(~0u);
}
template <class F, class Place> static inline void filled(F& f, Place place) {
  as_warp(&f, [&](auto lanes) {
    lanes([&](int lane, F* one) { for (int e = 0; e < F::num_elements; ++e) { const int i = lane * F::num_elements + e; one->x[e] = place(i / F::columns, i % F::columns); } });
  });
}
// A tile as an array by rows, from all lanes.
template <class V, class F, class Lanes, class Of> static inline void gathered(V* tile, Lanes lanes, Of of) {
  lanes([&](int lane, const auto& offer) { for (int e = 0; e < F::num_elements; ++e) tile[lane * F::num_elements + e] = (V)of(offer)->x[e]; });
}
template <class F, class V> static inline void fill_fragment(F& f, V v) { for (auto& e : f.x) e = (typename F::element_type)v; }
template <class Use, int M, int N, int K, class T, class Layout, class P>
static inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const P* p, unsigned ld) {
  filled(f, [&](int r, int c) { return std::is_same_v<Layout, row_major> ? p[r * ld + c] : p[c * ld + r]; });
}
template <int M, int N, int K, class T, class P>
static inline void load_matrix_sync(fragment<accumulator, M, N, K, T, void>& f, const P* p, unsigned ld, layout_t layout) {
  filled(f, [&](int r, int c) { return layout == mem_row_major ? p[r * ld + c] : p[c * ld + r]; });
}
template <int M, int N, int K, class T, class P>
static inline void store_matrix_sync(P* p, const fragment<accumulator, M, N, K, T, void>& f, unsigned ld, layout_t layout) {
  using F = fragment<accumulator, M, N, K, T, void>;
  as_warp(&f, [&](auto lanes) {
    typename F::element_type tile[M * N] = {};
    gathered<typename F::element_type, F>(tile, lanes, [](const F* one) { return one; });
    for (int r = 0; r < M; ++r) for (int c = 0; c < N; ++c) p[layout == mem_row_major ? r * ld + c : c * ld + r] = tile[r * N + c];
  });
}
template <class T, int N> struct row_of { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
template <class D, class A, class B, class C> struct Operands { D* d; const A* a; const B* b; const C* c; };
template <class D, class A, class B, class C> static inline void mma_sync(D& d, const A& a, const B& b, const C& c) {
  using Sum = std::conditional_t<std::is_integral_v<typename D::element_type> || std::is_same_v<typename D::element_type, double>, typename D::element_type, float>;
  using All = Operands<D, A, B, C>;
  as_warp(All{&d, &a, &b, &c}, [](auto lanes) {
    constexpr int M = D::rows, N = D::columns, K = A::columns;
    Sum left[M * K] = {}, right[K * N] = {}, sums[M * N] = {};
    gathered<Sum, A>(left, lanes, [](const All& all) { return all.a; });
    gathered<Sum, B>(right, lanes, [](const All& all) { return all.b; });
    gathered<Sum, C>(sums, lanes, [](const All& all) { return all.c; });
    using Row = typename row_of<Sum, N>::type;
    Row lines[K];
    std::memcpy(lines, right, sizeof lines);
    for (int m = 0; m < M; ++m) {
      Row row;
      std::memcpy(&row, sums + m * N, sizeof row);
      for (int k = 0; k < K; ++k) row += left[m * K + k] * lines[k];
      std::memcpy(sums + m * N, &row, sizeof row);
    }
    lanes([&](int lane, const All& all) { for (int e = 0; e < D::num_elements; ++e) all.d->x[e] = (typename D::element_type)sums[lane * D::num_elements + e]; });
  });
}
static inline float __float_to_tf32(float v) { return ww::bits<float>((ww::bits<unsigned>(v) + 0x1000u) & 0xffffe000u); }
} }  // namespace nvcuda::wmma
