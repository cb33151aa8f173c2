// CUDA's SIMD-in-a-word functions: two lanes of 16 bits or four of 8, by loops over the lanes.
namespace ww {
template <class E, class F> static inline unsigned lanewise(unsigned a, unsigned b, F f) {
  constexpr int bits = 8 * sizeof(E), count = 32 / bits;
  unsigned made = 0;
  for (int i = 0; i < count; ++i) {
    const long long v = f((long long)(E)(a >> i * bits), (long long)(E)(b >> i * bits));
    made |= ((unsigned)v & (0xffffffffu >> (32 - bits))) << i * bits;
  }
  return made;
}
template <class E> static inline long long held(long long v) {  // saturated to the lane's type
  const long long low = std::numeric_limits<E>::min(), high = std::numeric_limits<E>::max();
  return v < low ? low : v > high ? high : v;
}
template <class E> static inline unsigned lane_sum(unsigned a, unsigned b) {
  unsigned sum = 0;
  lanewise<E>(a, b, [&](long long x, long long y) { sum += (unsigned)(x > y ? x - y : y - x); return 0LL; });
  return sum;
}
}  // namespace ww
#define WW_TWO(NAME, E, VALUE) static inline unsigned NAME(unsigned a, unsigned b) { return ww::lanewise<E>(a, b, [](long long x, long long y) -> long long { return VALUE; }); }
#define WW_ONE(NAME, E, VALUE) static inline unsigned NAME(unsigned a) { return ww::lanewise<E>(a, a, [](long long x, long long) -> long long { return VALUE; }); }
#define WW_ORDER(N, NAME, E, OP) WW_TWO(__vcmp##NAME##N, E, x OP y ? -1 : 0) WW_TWO(__vset##NAME##N, E, x OP y ? 1 : 0)
#define WW_LANES(N, S, U) \
  WW_ONE(__vabs##N, S, x < 0 ? -x : x) WW_ONE(__vabsss##N, S, ww::held<S>(x < 0 ? -x : x)) WW_ONE(__vneg##N, S, -x) WW_ONE(__vnegss##N, S, ww::held<S>(-x)) \
  WW_TWO(__vadd##N, U, x + y) WW_TWO(__vaddss##N, S, ww::held<S>(x + y)) WW_TWO(__vaddus##N, U, ww::held<U>(x + y)) \
  WW_TWO(__vsub##N, U, x - y) WW_TWO(__vsubss##N, S, ww::held<S>(x - y)) WW_TWO(__vsubus##N, U, ww::held<U>(x - y)) \
  WW_TWO(__vavgs##N, S, (x + y + (x + y >= 0)) >> 1) WW_TWO(__vavgu##N, U, (x + y + 1) >> 1) WW_TWO(__vhaddu##N, U, (x + y) >> 1) \
  WW_TWO(__vabsdiffs##N, S, x > y ? x - y : y - x) WW_TWO(__vabsdiffu##N, U, x > y ? x - y : y - x) \
  WW_TWO(__vmaxs##N, S, x > y ? x : y) WW_TWO(__vmaxu##N, U, x > y ? x : y) WW_TWO(__vmins##N, S, x < y ? x : y) WW_TWO(__vminu##N, U, x < y ? x : y) \
  WW_ORDER(N, eq, U, ==) WW_ORDER(N, ne, U, !=) WW_ORDER(N, ges, S, >=) WW_ORDER(N, geu, U, >=) WW_ORDER(N, gts, S, >) WW_ORDER(N, gtu, U, >) \
  WW_ORDER(N, les, S, <=) WW_ORDER(N, leu, U, <=) WW_ORDER(N, lts, S, <) WW_ORDER(N, ltu, U, <) \
  static inline unsigned __vsads##N(unsigned a, unsigned b) { return ww::lane_sum<S>(a, b); } \
  static inline unsigned __vsadu##N(unsigned a, unsigned b) { return ww::lane_sum<U>(a, b); }
WW_LANES(2, short, unsigned short)
WW_LANES(4, signed char, unsigned char)

// Sums, the largest and the smallest of two or three, with a floor of zero (relu), and with the answer to which it was.
#define WW_EXTREME(M, OP, E, T, NAME) \
  static inline T __vi##M##_##NAME(T a, T b) { return a OP b ? a : b; } \
  static inline T __vi##M##3_##NAME(T a, T b, T c) { return __vi##M##_##NAME(__vi##M##_##NAME(a, b), c); } \
  static inline T __viadd##M##_##NAME(T a, T b, T c) { return __vi##M##_##NAME((T)((unsigned)a + (unsigned)b), c); } \
  static inline T __vib##M##_##NAME(T a, T b, bool* first) { *first = a OP##= b; return a OP b ? a : b; }
WW_EXTREME(max, >, int, int, s32) WW_EXTREME(min, <, int, int, s32) WW_EXTREME(max, >, unsigned, unsigned, u32) WW_EXTREME(min, <, unsigned, unsigned, u32)
#define WW_EXTREME2(M, OP, E, NAME) \
  static inline unsigned __vi##M##_##NAME(unsigned a, unsigned b) { return ww::lanewise<E>(a, b, [](long long x, long long y) { return x OP y ? x : y; }); } \
  static inline unsigned __vi##M##3_##NAME(unsigned a, unsigned b, unsigned c) { return __vi##M##_##NAME(__vi##M##_##NAME(a, b), c); } \
  static inline unsigned __viadd##M##_##NAME(unsigned a, unsigned b, unsigned c) { return __vi##M##_##NAME(__vadd2(a, b), c); } \
  static inline unsigned __vib##M##_##NAME(unsigned a, unsigned b, bool* high, bool* low) { \
    *high = (E)(a >> 16) OP##= (E)(b >> 16); *low = (E)a OP##= (E)b; return __vi##M##_##NAME(a, b); }
WW_EXTREME2(max, >, short, s16x2) WW_EXTREME2(min, <, short, s16x2) WW_EXTREME2(max, >, unsigned short, u16x2) WW_EXTREME2(min, <, unsigned short, u16x2)
#define WW_RELU(M, T, NAME, FLOOR) \
  static inline T __vi##M##_##NAME##_relu(T a, T b) { return FLOOR(__vi##M##_##NAME(a, b), 0); } \
  static inline T __vi##M##3_##NAME##_relu(T a, T b, T c) { return FLOOR(__vi##M##3_##NAME(a, b, c), 0); } \
  static inline T __viadd##M##_##NAME##_relu(T a, T b, T c) { return FLOOR(__viadd##M##_##NAME(a, b, c), 0); }
WW_RELU(max, int, s32, __vimax_s32) WW_RELU(min, int, s32, __vimax_s32) WW_RELU(max, unsigned, s16x2, __vimax_s16x2) WW_RELU(min, unsigned, s16x2, __vimax_s16x2)
#undef WW_TWO
#undef WW_ONE
#undef WW_ORDER
#undef WW_LANES
#undef WW_EXTREME
#undef WW_EXTREME2
#undef WW_RELU
