// Tensor-core fragments as plain loops: every lane holds the whole tile, so that each does all of the work and all agree.
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
  static constexpr int rows = tile_shape<Use, M, N, K>::rows, columns = tile_shape<Use, M, N, K>::columns, num_elements = rows * columns;
  using element_type = typename stored<T>::type;
  using storage_element_type = element_type;
  element_type x[num_elements];
};
template <class F, class V> static inline void fill_fragment(F& f, V v) { for (auto& e : f.x) e = (typename F::element_type)v; }
template <class Use, int M, int N, int K, class T, class Layout, class P>
static inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const P* p, unsigned ld) {
  constexpr bool by_row = std::is_same_v<Layout, row_major>;
  for (int r = 0; r < f.rows; ++r) for (int c = 0; c < f.columns; ++c) f.x[r * f.columns + c] = by_row ? p[r * ld + c] : p[c * ld + r];
}
template <int M, int N, int K, class T, class P>
static inline void load_matrix_sync(fragment<accumulator, M, N, K, T, void>& f, const P* p, unsigned ld, layout_t layout) {
  for (int r = 0; r < M; ++r) for (int c = 0; c < N; ++c) f.x[r * N + c] = layout == mem_row_major ? p[r * ld + c] : p[c * ld + r];
}
template <int M, int N, int K, class T, class P>
static inline void store_matrix_sync(P* p, const fragment<accumulator, M, N, K, T, void>& f, unsigned ld, layout_t layout) {
  for (int r = 0; r < M; ++r) for (int c = 0; c < N; ++c) p[layout == mem_row_major ? r * ld + c : c * ld + r] = f.x[r * N + c];
}
template <class D, class A, class B, class C> static inline void mma_sync(D& d, const A& a, const B& b, const C& c) {
  D r;
  for (int m = 0; m < D::rows; ++m) for (int n = 0; n < D::columns; ++n) {
    using Sum = std::conditional_t<std::is_integral_v<typename D::element_type> || std::is_same_v<typename D::element_type, double>, typename D::element_type, float>;
    Sum sum = (Sum)c.x[m * D::columns + n];
    for (int k = 0; k < A::columns; ++k) sum += (Sum)a.x[m * A::columns + k] * (Sum)b.x[k * B::columns + n];
    r.x[m * D::columns + n] = (typename D::element_type)sum;
  }
  d = r;
}
static inline float __float_to_tf32(float v) { return ww::bits<float>((ww::bits<unsigned>(v) + 0x1000u) & 0xffffe000u); }
} }  // namespace nvcuda::wmma
