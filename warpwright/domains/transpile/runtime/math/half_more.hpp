// Of half and bfloat16 what is rarer than what half.hpp has: conversions from and to whole numbers, and from float, with a direction; comparisons and
// functions of pairs.
namespace ww {
// The nearest T, or where that lies on the other side of v, its neighbour. mode: 'n' nearest, 'z' to zero, 'd' down, 'u' up. 64 bits are exact in a long double.
template <class T> static T small_float(long double v, char mode) {
  T r = (T)odd_float(v);
  if (mode == 'n' || v != v) return r;
  const bool down = mode == 'd' || (mode == 'z' && v > 0);
  const long double is = (float)r;
  if (down ? is <= v : is >= v) return r;
  const bool away = down == (is <= 0);  // the neighbour's magnitude is the larger one
  if (is == 0) r.stored = down ? 0x8001 : 0x0001;
  else r.stored = (unsigned short)(away ? r.stored + 1 : r.stored - 1);
  return r;
}
template <class I> static I whole_by(float v, char mode) { return whole<I>(mode == 'n' ? std::nearbyint(v) : mode == 'z' ? std::trunc(v) : mode == 'd' ? std::floor(v) : std::ceil(v)); }
}  // namespace ww
#define WW_FROM(T, NAME, I, FROM, MODE, LETTER) static inline T __##FROM##2##NAME##_r##MODE(I v) { return ww::small_float<T>((long double)v, LETTER); }
#define WW_TO(T, NAME, I, TO, MODE, LETTER) static inline I __##NAME##2##TO##_r##MODE(T v) { return ww::whole_by<I>((float)v, LETTER); }
#define WW_DIRECTED(W, T, NAME, I, WORD) W(T, NAME, I, WORD, z, 'z') W(T, NAME, I, WORD, d, 'd') W(T, NAME, I, WORD, u, 'u')
#define WW_ALL(W, T, NAME, I, WORD) W(T, NAME, I, WORD, n, 'n') WW_DIRECTED(W, T, NAME, I, WORD)
#define WW_WHOLES(T, NAME) \
  WW_DIRECTED(WW_FROM, T, NAME, float, float) WW_DIRECTED(WW_FROM, T, NAME, int, int) WW_TO(T, NAME, int, int, d, 'd') WW_TO(T, NAME, int, int, u, 'u') \
  WW_ALL(WW_FROM, T, NAME, unsigned, uint) WW_ALL(WW_TO, T, NAME, unsigned, uint) WW_ALL(WW_FROM, T, NAME, short, short) WW_ALL(WW_TO, T, NAME, short, short) \
  WW_ALL(WW_FROM, T, NAME, unsigned short, ushort) WW_ALL(WW_TO, T, NAME, unsigned short, ushort) WW_ALL(WW_FROM, T, NAME, long long, ll) WW_ALL(WW_TO, T, NAME, long long, ll) \
  WW_ALL(WW_FROM, T, NAME, unsigned long long, ull) WW_ALL(WW_TO, T, NAME, unsigned long long, ull) WW_TO(T, NAME, signed char, char, z, 'z') WW_TO(T, NAME, unsigned char, uchar, z, 'z')
WW_WHOLES(__half, half) WW_WHOLES(__nv_bfloat16, bfloat16)
static inline __nv_bfloat16 __double2bfloat16(double v) { return ww::odd_float(v); }
#undef WW_FROM
#undef WW_TO
#undef WW_DIRECTED
#undef WW_ALL
#undef WW_WHOLES
namespace ww { template <class T> static T saturated(T v) { return (float)v > 0 ? (float)v < 1 ? v : T(1.f) : T(0.f); } }  // NaN is 0
#define WW_OR_NAN(T, T2, NAME, NOT) \
  static inline bool __h##NAME##u(T a, T b) { return !__h##NOT(a, b); } \
  static inline T2 __h##NAME##u2(T2 a, T2 b) { return {T(__h##NAME##u(a.x, b.x) ? 1.f : 0.f), T(__h##NAME##u(a.y, b.y) ? 1.f : 0.f)}; } \
  static inline bool __hb##NAME##u2(T2 a, T2 b) { return __h##NAME##u(a.x, b.x) && __h##NAME##u(a.y, b.y); }
#define WW_UNORDERED(T, T2) WW_OR_NAN(T, T2, eq, ne) WW_OR_NAN(T, T2, ne, eq) WW_OR_NAN(T, T2, lt, ge) WW_OR_NAN(T, T2, ge, lt) WW_OR_NAN(T, T2, gt, le) WW_OR_NAN(T, T2, le, gt) \
  static inline int __hisinf(T v) { return std::isinf((float)v) ? (float)v > 0 ? 1 : -1 : 0; }
WW_UNORDERED(__half, __half2) WW_UNORDERED(__nv_bfloat16, __nv_bfloat162)
#undef WW_OR_NAN
#undef WW_UNORDERED
#define WW_PAIRS(T, T2) \
  static inline T __hadd_rn(T a, T b) { return a + b; } \
  static inline T __hsub_rn(T a, T b) { return a - b; } \
  static inline T __hmul_rn(T a, T b) { return a * b; } \
  static inline T2 __hadd2_rn(T2 a, T2 b) { return a + b; } \
  static inline T2 __hsub2_rn(T2 a, T2 b) { return a - b; } \
  static inline T2 __hmul2_rn(T2 a, T2 b) { return a * b; } \
  static inline T __hadd_sat(T a, T b) { return ww::saturated(a + b); } \
  static inline T __hsub_sat(T a, T b) { return ww::saturated(a - b); } \
  static inline T __hmul_sat(T a, T b) { return ww::saturated(a * b); } \
  static inline T __hfma_sat(T a, T b, T c) { return ww::saturated(__hfma(a, b, c)); } \
  static inline T2 __hadd2_sat(T2 a, T2 b) { return {__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)}; } \
  static inline T2 __hsub2_sat(T2 a, T2 b) { return {__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y)}; } \
  static inline T2 __hmul2_sat(T2 a, T2 b) { return {__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)}; } \
  static inline T2 __hfma2_sat(T2 a, T2 b, T2 c) { return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; } \
  static inline T __hfma_relu(T a, T b, T c) { const T r = __hfma(a, b, c); return (float)r < 0 ? T(0.f) : r; } \
  static inline T2 __hfma2_relu(T2 a, T2 b, T2 c) { return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; } \
  static inline T __hmax_nan(T a, T b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); } \
  static inline T __hmin_nan(T a, T b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); } \
  static inline bool __hbeq2(T2 a, T2 b) { return __heq(a.x, b.x) && __heq(a.y, b.y); } \
  static inline bool __hbne2(T2 a, T2 b) { return __hne(a.x, b.x) && __hne(a.y, b.y); } \
  static inline bool __hbgt2(T2 a, T2 b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); } \
  static inline bool __hbge2(T2 a, T2 b) { return __hge(a.x, b.x) && __hge(a.y, b.y); } \
  static inline bool __hblt2(T2 a, T2 b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); } \
  static inline bool __hble2(T2 a, T2 b) { return __hle(a.x, b.x) && __hle(a.y, b.y); } \
  static inline T2 __hne2(T2 a, T2 b) { return {T(__hne(a.x, b.x) ? 1.f : 0.f), T(__hne(a.y, b.y) ? 1.f : 0.f)}; } \
  static inline T2 h2exp2(T2 a) { return {hexp2(a.x), hexp2(a.y)}; } \
  static inline T2 h2log(T2 a) { return {hlog(a.x), hlog(a.y)}; } \
  static inline T2 h2log2(T2 a) { return {hlog2(a.x), hlog2(a.y)}; } \
  static inline T2 h2sqrt(T2 a) { return {hsqrt(a.x), hsqrt(a.y)}; } \
  static inline T2 h2rsqrt(T2 a) { return {hrsqrt(a.x), hrsqrt(a.y)}; } \
  static inline T2 h2rcp(T2 a) { return {hrcp(a.x), hrcp(a.y)}; } \
  static inline T2 h2sin(T2 a) { return {hsin(a.x), hsin(a.y)}; } \
  static inline T2 h2cos(T2 a) { return {hcos(a.x), hcos(a.y)}; } \
  static inline T2 h2floor(T2 a) { return {hfloor(a.x), hfloor(a.y)}; } \
  static inline T2 h2ceil(T2 a) { return {hceil(a.x), hceil(a.y)}; } \
  static inline T2 h2rint(T2 a) { return {hrint(a.x), hrint(a.y)}; } \
  static inline T2 h2trunc(T2 a) { return {htrunc(a.x), htrunc(a.y)}; } \
  static inline T2 h2log10(T2 a) { return {hlog10(a.x), hlog10(a.y)}; } \
  static inline T hexp10(T a) { return T(std::pow(10.0, (double)(float)a)); } \
  static inline T2 h2exp10(T2 a) { return {hexp10(a.x), hexp10(a.y)}; } \
  static inline T htanh_approx(T a) { return htanh(a); } \
  static inline T2 h2tanh(T2 a) { return {htanh(a.x), htanh(a.y)}; } \
  static inline T2 h2tanh_approx(T2 a) { return h2tanh(a); } \
  static inline T2 __hmax2_nan(T2 a, T2 b) { return {__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)}; } \
  static inline T2 __hmin2_nan(T2 a, T2 b) { return {__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)}; } \
  static inline T2 __hisnan2(T2 a) { return {T(__hisnan(a.x) ? 1.f : 0.f), T(__hisnan(a.y) ? 1.f : 0.f)}; } \
  static inline T2 __hcmadd(T2 a, T2 b, T2 c) { return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))}; } \
  WW_MASK(T, T2, eq) WW_MASK(T, T2, ne) WW_MASK(T, T2, gt) WW_MASK(T, T2, ge) WW_MASK(T, T2, lt) WW_MASK(T, T2, le)
// All bits of a lane where the comparison holds; with `u` also where a number is NaN.
#define WW_MASK(T, T2, OP) \
  static inline unsigned __h##OP##2_mask(T2 a, T2 b) { return (__h##OP(a.x, b.x) ? 0xffffu : 0u) | (__h##OP(a.y, b.y) ? 0xffff0000u : 0u); } \
  static inline unsigned __h##OP##u2_mask(T2 a, T2 b) { \
    return __h##OP##2_mask(a, b) | (__hisnan(a.x) || __hisnan(b.x) ? 0xffffu : 0u) | (__hisnan(a.y) || __hisnan(b.y) ? 0xffff0000u : 0u); \
  }
WW_PAIRS(__half, __half2) WW_PAIRS(__nv_bfloat16, __nv_bfloat162)
#undef WW_PAIRS
#undef WW_MASK
static inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
static inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
static inline __half2 __low2half2(__half2 a) { return {a.x, a.x}; }
static inline __half2 __high2half2(__half2 a) { return {a.y, a.y}; }
static inline __half2 __lowhigh2highlow(__half2 a) { return {a.y, a.x}; }
