// Trees of sums over neighbours, as of `for (d = 1; d < n; d *= 2) if (t % (2 * d) == 0) s[t] += s[t + d]`: the same sums in the same order.
namespace ww {
#if defined(__GNUC__) && !defined(__clang__)
template <class T> using TreeVector = typename OfWarp<T>::Vector;
// Sums of the pairs in two vectors that follow one another.
template <class T> static inline __attribute__((always_inline)) TreeVector<T> tree_pairs(TreeVector<T> a, TreeVector<T> b) {
  const typename OfWarp<T>::Order even = 2 * OfWarp<T>::counted();
  return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, even + 1);
}
// Steps of d up to a vector's width, each in the places where it leaves its sums.
template <class T> static inline __attribute__((always_inline)) TreeVector<T> tree_inside(TreeVector<T> v) {
  const typename OfWarp<T>::Order count = OfWarp<T>::counted();
#pragma GCC unroll 4
  for (int d = 1; d < OfWarp<T>::width; d *= 2) v = (count & (2 * d - 1)) == 0 ? v + __builtin_shuffle(v, (count + d) & (OfWarp<T>::width - 1)) : v;
  return v;
}
#endif
// `first`: nothing but s[0] is read afterwards.
template <bool first, class T> static inline __attribute__((always_inline)) void tree_of_neighbours(T* s, int n) {
  int d = 1;
#if defined(__GNUC__) && !defined(__clang__)
  if constexpr (OfWarp<T>::fits) {
    constexpr int width = OfWarp<T>::width;
    auto* const all = (TreeVector<T>*)s;
    if (n >= 2 * width && (n & (n - 1)) == 0) {
      if constexpr (first) {
        TreeVector<T> part[512 / width];
        int count = n / width / 2;
#pragma GCC unroll 16
        for (int i = 0; i < count; ++i) part[i] = tree_pairs<T>(all[2 * i], all[2 * i + 1]);
#pragma GCC unroll 8
        for (count /= 2; count; count /= 2) {
#pragma GCC unroll 16
          for (int i = 0; i < count; ++i) part[i] = tree_pairs<T>(part[2 * i], part[2 * i + 1]);
        }
        TreeVector<T> v = part[0];
#pragma GCC unroll 4
        for (int left = width; left > 1; left /= 2) v = tree_pairs<T>(v, v);
        s[0] = v[0];
        return;
      }
      for (int i = 0; i < n / width; ++i) all[i] = tree_inside<T>(all[i]);
      d = width;
    }
  }
#endif
  for (; d < n; d *= 2)
    for (int t = 0; t < n; t += 2 * d) s[t] += s[t + d];
}
}  // namespace ww
