// Vectors of neighbouring threads under masks: a mask has all bits of a lane, or none.
namespace ww {
typedef int ints __attribute__((vector_size(width * 4)));
typedef unsigned uints __attribute__((vector_size(width * 4)));
#define WW_LANES static inline __attribute__((always_inline))
template <class V, class T> WW_LANES V spread(T x) { return x - V{}; }
WW_LANES ints mask_if(bool all) { return -(int)all - ints{}; }
WW_LANES ints every_lane() { return ~ints{}; }
WW_LANES ints from_lane(int first) {
  ints v;
  for (int i = 0; i < width; ++i) v[i] = i;
  return v + first;
}
#ifdef WW_MASKED_MOVES
WW_LANES unsigned short bits_of(ints mask) { return (unsigned short)__builtin_ia32_ptestmd512(mask, mask, -1); }
#endif
WW_LANES bool some_lane(ints mask) {
#ifdef WW_MASKED_MOVES
  return bits_of(mask) != 0;
#elif defined(__AVX__) && !defined(__AVX512F__)
  typedef float Eight __attribute__((vector_size(32)));
  return __builtin_ia32_movmskps256((Eight)mask) != 0;
#else
  int any = 0;
  for (int i = 0; i < width; ++i) any |= mask[i];
  return any != 0;
#endif
}
template <class V> WW_LANES V least_of(V a, V b) { return a < b ? a : b; }
template <class V> WW_LANES V most_of(V a, V b) { return a > b ? a : b; }
WW_LANES floats least_of(floats a, floats b) { return ((a < b) | (b != b)) ? a : b; }  // one that is no number is the other
WW_LANES floats most_of(floats a, floats b) { return ((a > b) | (b != b)) ? a : b; }
template <class V, class T> WW_LANES V load_lanes(const T* p) { V v; __builtin_memcpy(&v, p, sizeof v); return v; }
template <class V, class T> WW_LANES V load_lanes(const T* p, ints mask) {
#ifdef WW_MASKED_MOVES  // one instruction: by single lanes a border of few pixels was half of a row's time (depthwise)
  if constexpr (sizeof(T) == 4 && sizeof(V) == sizeof mask) return (V)__builtin_ia32_loadups512_mask((const float*)p, floats{}, bits_of(mask));
#endif
  if (!some_lane(~mask)) return load_lanes<V>(p);  // inside of a border that is most of it
#if defined(__AVX__) && !defined(__AVX512F__)
  typedef float Eight __attribute__((vector_size(32)));
  typedef int Masks __attribute__((vector_size(32)));
  if constexpr (sizeof(T) == 4) return (V)__builtin_ia32_maskloadps256((const Eight*)p, (Masks)mask);
#endif
  T v[width];
  for (int i = 0; i < width; ++i) v[i] = mask[i] ? p[i] : T();
  return load_lanes<V>(v);
}
template <class V, class T> WW_LANES void store_lanes(T* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
template <class V, class T> WW_LANES void store_lanes(T* p, V v, ints mask) {
#ifdef WW_MASKED_MOVES
  if constexpr (sizeof(T) == 4 && sizeof(V) == sizeof mask) return (void)__builtin_ia32_storeups512_mask((float*)p, (floats)v, bits_of(mask));
#endif
  if (!some_lane(~mask)) return store_lanes(p, v);
  for (int i = 0; i < width; ++i) if (mask[i]) p[i] = v[i];
}
// Elements that lie evenly apart, one by one.
template <class V, class T> WW_LANES V load_apart(const T* p, long by) {
  V v;
#pragma GCC unroll 16
  for (int i = 0; i < width; ++i) v[i] = p[i * by];
  return v;
}
template <class V, class T> WW_LANES V load_apart(const T* p, long by, ints mask) {
  V v;
  for (int i = 0; i < width; ++i) v[i] = mask[i] ? p[i * by] : T();
  return v;
}
template <class V, class T> WW_LANES void store_apart(T* p, long by, V v) {
#pragma GCC unroll 16
  for (int i = 0; i < width; ++i) p[i * by] = v[i];
}
template <class V, class T> WW_LANES void store_apart(T* p, long by, V v, ints mask) {
  for (int i = 0; i < width; ++i) if (mask[i]) p[i * by] = v[i];
}
// The memory from the lowest to the highest of some elements, of which neighbouring lanes' lie evenly apart.
struct Extent {
  uintptr_t low = ~(uintptr_t)0, high = 0;
  template <class T> void add(const T* p, long by) {
    const uintptr_t first = (uintptr_t)p, last = first + (width - 1) * by * (long)sizeof(T);
    low = std::min({low, first, last});
    high = std::max({high, first + sizeof(T), last + sizeof(T)});
  }
};
static inline bool apart(const Extent& a, const Extent& b) { return a.high <= b.low || b.high <= a.low; }
template <class V, class T, class I> WW_LANES V gather_lanes(const T* p, I at, ints mask) {
  V v;
  for (int i = 0; i < width; ++i) v[i] = mask[i] ? p[at[i]] : T();
  return v;
}
template <class V, class T, class I> WW_LANES V gather_lanes(const T* p, I at) { return gather_lanes<V>(p, at, every_lane()); }
template <class V, class T, class I> WW_LANES void scatter_lanes(T* p, I at, V v, ints mask) {
  for (int i = 0; i < width; ++i) if (mask[i]) p[at[i]] = v[i];
}
template <class V, class T, class I> WW_LANES void scatter_lanes(T* p, I at, V v) { scatter_lanes(p, at, v, every_lane()); }
#undef WW_LANES
}  // namespace ww
