// Whole warps of 32 lanes: shuffles from one array with a place for each lane to another, and what is computed with their answers. Words of 4 bytes
// go in explicit vectors of one size: with distances known, all steps of a warp's sum are in registers, where loops vectorised each on its own meet in
// memory, with loads of 64 bytes that wait for stores of 32.
namespace ww {
#if defined(__GNUC__) && !defined(__clang__)
#ifdef __AVX512F__
constexpr int lane_bytes = 64;
#else
constexpr int lane_bytes = 32;
#endif
template <class T> struct OfWarp {
  using Word = std::conditional_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, T, int>;  // of a class there are no vectors, nor is one used
  typedef Word Vector __attribute__((vector_size(lane_bytes), aligned(4), may_alias));
  typedef int Order __attribute__((vector_size(lane_bytes)));
  static constexpr int width = lane_bytes / 4, parts = 32 / width;
  static constexpr bool fits = std::is_same_v<T, float> || std::is_same_v<T, int> || std::is_same_v<T, unsigned>;
  static Order counted() { Order order = {}; for (int i = 0; i < width; ++i) order[i] = i; return order; }
};
#else
template <class T> struct OfWarp { static constexpr bool fits = false; };
#endif
#define WW_WARP template <class T> static inline __attribute__((always_inline)) void

WW_WARP lanes_same(const T* from, T* to) {
  if constexpr (OfWarp<T>::fits) {
    using W = OfWarp<T>;
    for (int part = 0; part < W::parts; ++part) ((typename W::Vector*)to)[part] = ((const typename W::Vector*)from)[part];
  } else {
    for (int lane = 0; lane < 32; ++lane) to[lane] = from[lane];
  }
}
WW_WARP lanes_at(const T* from, T* to, int source) {
  const T taken = from[source & 31];
  for (int lane = 0; lane < 32; ++lane) to[lane] = taken;
}
WW_WARP lanes_up(const T* from, T* to, unsigned delta) {
  const int far = (int)std::min(delta, 32u) & 31;
  if constexpr (OfWarp<T>::fits) {  // lanes `far` before those of a part begin in one vector and end in the next
    using W = OfWarp<T>;
    const auto* all = (const typename W::Vector*)from;
    const typename W::Order count = W::counted(), order = count + (W::width - far % W::width);
    for (int part = 0; part < W::parts; ++part) {
      const int last = part - far / W::width;
      ((typename W::Vector*)to)[part] = last < 0 ? all[part]
          : last == 0 ? __builtin_shuffle(all[part], all[0], count < far % W::width ? count : order)
                      : __builtin_shuffle(all[last - 1], all[last], order);
    }
  } else {
    for (int lane = 0; lane < far; ++lane) to[lane] = from[lane];
    for (int lane = far; lane < 32; ++lane) to[lane] = from[lane - far];
  }
}
WW_WARP lanes_down(const T* from, T* to, unsigned delta) {
  const int far = (int)std::min(delta, 32u) & 31;
  if constexpr (OfWarp<T>::fits) {
    using W = OfWarp<T>;
    const auto* all = (const typename W::Vector*)from;
    const typename W::Order count = W::counted(), order = count + far % W::width;
    for (int part = 0; part < W::parts; ++part) {
      const int first = part + far / W::width;
      ((typename W::Vector*)to)[part] = first >= W::parts ? all[part]
          : first == W::parts - 1 ? __builtin_shuffle(all[first], all[part], order < W::width ? order : count + W::width)
                                  : __builtin_shuffle(all[first], all[first + 1], order);
    }
  } else {
    for (int lane = 0; lane < 32 - far; ++lane) to[lane] = from[lane + far];
    for (int lane = 32 - far; lane < 32; ++lane) to[lane] = from[lane];
  }
}
WW_WARP lanes_xor(const T* from, T* to, int bits) {
  if (bits & ~31) bits = 0;
  if constexpr (OfWarp<T>::fits) {  // vectors change places, and lanes inside of them
    using W = OfWarp<T>;
    const typename W::Order order = W::counted() ^ (bits & (W::width - 1));
    for (int part = 0; part < W::parts; ++part)
      ((typename W::Vector*)to)[part] = __builtin_shuffle(((const typename W::Vector*)from)[part ^ (bits / W::width)], order);
  } else {
    for (int lane = 0; lane < 32; ++lane) to[lane] = from[lane ^ bits];
  }
}
#undef WW_WARP

// to[lane] = operation(one[lane], other[lane])
template <class T, class F> static inline __attribute__((always_inline)) void lanes_joined(const T* one, const T* other, T* to, F operation) {
  if constexpr (OfWarp<T>::fits) {
    using W = OfWarp<T>;
    for (int part = 0; part < W::parts; ++part)
      ((typename W::Vector*)to)[part] = operation(((const typename W::Vector*)one)[part], ((const typename W::Vector*)other)[part]);
  } else {
    for (int lane = 0; lane < 32; ++lane) to[lane] = operation(one[lane], other[lane]);
  }
}
// Of a NaN and a number, the number, as fmax_f and fmin_f have it.
struct Larger { template <class V> V operator()(V a, V b) const { const V r = a > b ? a : b; return b != b ? a : r; } };
struct Smaller { template <class V> V operator()(V a, V b) const { const V r = a < b ? a : b; return b != b ? a : r; } };
// a < b (or a <= b, for `equal`) ? b : a; or ? a : b, where it is not the `second` that is chosen.
template <bool equal, bool second> struct Chosen {
  template <class V> V operator()(V a, V b) const {
    const auto holds = equal ? a <= b : a < b;
    return second ? (holds ? b : a) : (holds ? a : b);
  }
};
struct Sum { template <class V> V operator()(V a, V b) const { return a + b; } };
struct Product { template <class V> V operator()(V a, V b) const { return a * b; } };
struct Both { template <class V> V operator()(V a, V b) const { return a & b; } };
struct Either { template <class V> V operator()(V a, V b) const { return a | b; } };
struct One { template <class V> V operator()(V a, V b) const { return a ^ b; } };
}  // namespace ww
