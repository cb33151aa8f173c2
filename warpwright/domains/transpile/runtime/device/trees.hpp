// Trees of sums over neighbours, as of `for (d = 1; d < n; d *= 2) if (t % (2 * d) == 0) s[t] += s[t + d]`: the same sums in the same order.
namespace ww {
#if defined(__GNUC__) && !defined(__clang__)
template <class T> using TreeVector = typename OfWarp<T>::Vector;
// Sums of the pairs in two vectors that follow one another.
template <class T> static inline __attribute__((always_inline)) TreeVector<T> tree_pairs(TreeVector<T> a, TreeVector<T> b) {
  const typename OfWarp<T>::Order even = 2 * OfWarp<T>::counted();
  return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, even + 1);
}
// Sums of the pairs in the halves of two vectors of 32 bytes: low halves' first, as one instruction has it. (In order it takes three; 256 floats on AVX2:
// 80 ns, 25 so.) After two steps the pairs that are left are a half apart.
template <class T> static inline __attribute__((always_inline)) TreeVector<T> tree_half_pairs(TreeVector<T> a, TreeVector<T> b) {
  typedef typename OfWarp<T>::Order Order;
  return __builtin_shuffle(a, b, Order{0, 2, 8, 10, 4, 6, 12, 14}) + __builtin_shuffle(a, b, Order{1, 3, 9, 11, 5, 7, 13, 15});
}
template <class T> static inline __attribute__((always_inline)) TreeVector<T> tree_halves(TreeVector<T> a, TreeVector<T> b) {
  typedef typename OfWarp<T>::Order Order;
  return __builtin_shuffle(a, b, Order{0, 1, 2, 3, 8, 9, 10, 11}) + __builtin_shuffle(a, b, Order{4, 5, 6, 7, 12, 13, 14, 15});
}
// Sums of eight neighbours each in eight vectors that follow one another.
template <class T> static inline __attribute__((always_inline)) TreeVector<T> tree_eights(const TreeVector<T>* v) {
  TreeVector<T> part[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) part[i] = tree_half_pairs<T>(v[2 * i], v[2 * i + 1]);
  return tree_halves<T>(tree_half_pairs<T>(part[0], part[1]), tree_half_pairs<T>(part[2], part[3]));
}
// The sum of a vector's first numbers, by pairs.
template <class T> static inline __attribute__((always_inline)) T tree_of_one(TreeVector<T> v, int left) {
#pragma GCC unroll 4
  for (; left > 1; left /= 2) v = tree_pairs<T>(v, v);
  return v[0];
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
        if constexpr (width == 8) {
          int count = n / width, left = width;  // vectors, and numbers of the last one
          const TreeVector<T>* from = all;
          for (; count >= 8; count /= 8, from = part) {
#pragma GCC unroll 8
            for (int i = 0; i < count / 8; ++i) part[i] = tree_eights<T>(from + 8 * i);
          }
          if (count > 1) {
            TreeVector<T> eight[8] = {};
#pragma GCC unroll 4
            for (int i = 0; i < count; ++i) eight[i] = from[i];
            part[0] = tree_eights<T>(eight);
            left = count;
          }
          s[0] = tree_of_one<T>(part[0], left);
          return;
        }
        int count = n / width / 2;  // one loop over count, not two: gcc then keeps the parts in registers (256 floats on AVX-512: 36 ns, 16 so)
#pragma GCC unroll 16
        for (int i = 0; i < count; ++i) part[i] = tree_pairs<T>(all[2 * i], all[2 * i + 1]);
#pragma GCC unroll 8
        for (count /= 2; count; count /= 2) {
#pragma GCC unroll 16
          for (int i = 0; i < count; ++i) part[i] = tree_pairs<T>(part[2 * i], part[2 * i + 1]);
        }
        s[0] = tree_of_one<T>(part[0], width);
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
