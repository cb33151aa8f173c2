// half and bfloat16: stored in 16 bits, computed in float, rounded to nearest even after each operation.
namespace ww {
static inline unsigned short float_to_half(float f) {
#ifdef __F16C__
  return (unsigned short)__builtin_ia32_vcvtps2ph((__attribute__((vector_size(16))) float){f, 0, 0, 0}, 0)[0];
#else
  const unsigned u = bits<unsigned>(f), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 aligns the last place, and the hardware rounds
    const float shifted = bits<float>(magnitude) + 0.5f;
    return (unsigned short)(sign | (bits<unsigned>(shifted) - 0x3f000000u));
  }
  const unsigned odd = (magnitude >> 13) & 1u;
  return (unsigned short)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}
static inline float half_to_float(unsigned short h) {
#ifdef __F16C__
  typedef short shorts __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps((shorts){(short)h, 0, 0, 0, 0, 0, 0, 0})[0];
#else
  const unsigned sign = (unsigned)(h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return bits<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest < 0x400u) return bits<float>(sign | bits<unsigned>((float)rest * 5.9604644775390625e-8f));
  return bits<float>(sign | ((rest << 13) + 0x38000000u));
#endif
}
// v in float, an odd one where that is not exact: rounded on to fewer bits, it becomes what v itself does.
template <class W> static inline float odd_float(W v) {
  const float r = (float)v;
  if ((W)r == v || v != v || (bits<unsigned>(r) & 1u)) return r;
  return bits<float>(bits<unsigned>(r) + (std::fabs((W)r) < std::fabs(v) ? 1u : ~0u));
}
// v in float, from which it is rounded once more: an odd one where v may have more bits than a float. Halves end before whole numbers do.
template <bool wide, class T> static inline float to_round(T v) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, long double>) return odd_float(v);
  else if constexpr (wide && std::is_integral_v<T> && sizeof(T) >= 4) return odd_float((std::conditional_t<sizeof(T) == 4, double, long double>)v);
  else return (float)v;
}
static inline unsigned short float_to_bfloat(float f) {
  const unsigned u = bits<unsigned>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((u >> 16) | 0x40u);
  return (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
static inline float bfloat_to_float(unsigned short h) { return bits<float>((unsigned)h << 16); }
}  // namespace ww

// With a whole number the small type, with float or double that type: as c10::Half has it.
#define WW_SMALL_MIXED(NAME, SIGN) \
  template <class A, class R = std::conditional_t<std::is_floating_point_v<A>, A, NAME>, class = std::enable_if_t<std::is_arithmetic_v<A>>> \
  static inline R operator SIGN(NAME a, A b) { return R((float)a SIGN (std::conditional_t<std::is_floating_point_v<A>, A, float>)b); } \
  template <class A, class R = std::conditional_t<std::is_floating_point_v<A>, A, NAME>, class = std::enable_if_t<std::is_arithmetic_v<A>>> \
  static inline R operator SIGN(A a, NAME b) { return R((std::conditional_t<std::is_floating_point_v<A>, A, float>)a SIGN (float)b); }
#define WW_SMALL_FLOAT(NAME, TO, FROM, WIDE) \
  struct NAME##_raw { unsigned short x; }; \
  struct NAME { \
    unsigned short stored; \
    NAME() = default; \
    NAME(NAME##_raw raw) : stored(raw.x) {} \
    operator NAME##_raw() const { return {stored}; } \
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> NAME(T v) : stored(TO(ww::to_round<WIDE>(v))) {} \
    template <class T, std::enable_if_t<!std::is_same_v<T, NAME> && std::is_class_v<T> && std::is_convertible_v<T, float>, int> = 0> explicit NAME(T v) : stored(TO((float)v)) {} \
    operator float() const { return FROM(stored); } \
    NAME& operator+=(NAME o) { return *this = NAME((float)*this + (float)o); } \
    NAME& operator-=(NAME o) { return *this = NAME((float)*this - (float)o); } \
    NAME& operator*=(NAME o) { return *this = NAME((float)*this * (float)o); } \
    NAME& operator/=(NAME o) { return *this = NAME((float)*this / (float)o); } \
  }; \
  static inline NAME operator+(NAME a, NAME b) { return NAME((float)a + (float)b); } \
  static inline NAME operator-(NAME a, NAME b) { return NAME((float)a - (float)b); } \
  static inline NAME operator*(NAME a, NAME b) { return NAME((float)a * (float)b); } \
  static inline NAME operator/(NAME a, NAME b) { return NAME((float)a / (float)b); } \
  static inline NAME operator-(NAME a) { return NAME(-(float)a); } \
  WW_SMALL_MIXED(NAME, +) WW_SMALL_MIXED(NAME, -) WW_SMALL_MIXED(NAME, *) WW_SMALL_MIXED(NAME, /) \
  struct alignas(4) NAME##2_ { NAME x, y; NAME##2_() = default; NAME##2_(NAME a, NAME b) : x(a), y(b) {} \
    NAME##2_& operator+=(NAME##2_ o) { x += o.x; y += o.y; return *this; } \
    NAME##2_& operator*=(NAME##2_ o) { x *= o.x; y *= o.y; return *this; } }; \
  static inline NAME##2_ operator+(NAME##2_ a, NAME##2_ b) { return {a.x + b.x, a.y + b.y}; } \
  static inline NAME##2_ operator-(NAME##2_ a, NAME##2_ b) { return {a.x - b.x, a.y - b.y}; } \
  static inline NAME##2_ operator*(NAME##2_ a, NAME##2_ b) { return {a.x * b.x, a.y * b.y}; }
WW_SMALL_FLOAT(__half, ww::float_to_half, ww::half_to_float, false)
WW_SMALL_FLOAT(__nv_bfloat16, ww::float_to_bfloat, ww::bfloat_to_float, true)
using half = __half;
using half2 = __half2_;
using __half2 = __half2_;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162_;
using __nv_bfloat162 = __nv_bfloat162_;

#define WW_SMALL_FLOAT_FUNCTIONS(T, T2) \
  static inline T __hadd(T a, T b) { return a + b; } \
  static inline T __hsub(T a, T b) { return a - b; } \
  static inline T __hmul(T a, T b) { return a * b; } \
  static inline T __hdiv(T a, T b) { return a / b; } \
  static inline T __hfma(T a, T b, T c) { return T(std::fma((float)a, (float)b, (float)c)); } \
  static inline T __hneg(T a) { return -a; } \
  static inline T __habs(T a) { return T(std::fabs((float)a)); } \
  static inline T __hmax(T a, T b) { return (float)a > (float)b || (float)b != (float)b ? a : b; } /* of a NaN and a number, the number */ \
  static inline T __hmin(T a, T b) { return (float)a < (float)b || (float)b != (float)b ? a : b; } \
  static inline T max(T a, T b) { return __hmax(a, b); } \
  static inline T min(T a, T b) { return __hmin(a, b); } \
  static inline bool __hgt(T a, T b) { return (float)a > (float)b; } \
  static inline bool __hge(T a, T b) { return (float)a >= (float)b; } \
  static inline bool __hlt(T a, T b) { return (float)a < (float)b; } \
  static inline bool __hle(T a, T b) { return (float)a <= (float)b; } \
  static inline bool __heq(T a, T b) { return (float)a == (float)b; } \
  static inline bool __hne(T a, T b) { return (float)a < (float)b || (float)a > (float)b; } /* of a NaN not */ \
  static inline bool __hisnan(T a) { return std::isnan((float)a); } \
  static inline T hexp(T a) { return T(std::exp((float)a)); } \
  static inline T hlog(T a) { return T(std::log((float)a)); } \
  static inline T hsqrt(T a) { return T(std::sqrt((float)a)); } \
  static inline T hrsqrt(T a) { return T(1.0f / std::sqrt((float)a)); } \
  static inline T hrcp(T a) { return T(1.0f / (float)a); } \
  static inline T hlog2(T a) { return T(std::log2((float)a)); } \
  static inline T hlog10(T a) { return T(std::log10((float)a)); } \
  static inline T hexp2(T a) { return T(std::exp2((float)a)); } \
  static inline T hfloor(T a) { return T(std::floor((float)a)); } \
  static inline T hceil(T a) { return T(std::ceil((float)a)); } \
  static inline T htrunc(T a) { return T(std::trunc((float)a)); } \
  static inline T hrint(T a) { return T(std::nearbyint((float)a)); } \
  static inline T hsin(T a) { return T(std::sin((float)a)); } \
  static inline T hcos(T a) { return T(std::cos((float)a)); } \
  static inline T htanh(T a) { return T(std::tanh((float)a)); } \
  static inline T2 __hadd2(T2 a, T2 b) { return a + b; } \
  static inline T2 __hsub2(T2 a, T2 b) { return a - b; } \
  static inline T2 __hmul2(T2 a, T2 b) { return a * b; } \
  static inline T2 __h2div(T2 a, T2 b) { return {a.x / b.x, a.y / b.y}; } \
  static inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  static inline T2 __hmax2(T2 a, T2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
  static inline T2 __hmin2(T2 a, T2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
  static inline T2 __hneg2(T2 a) { return {-a.x, -a.y}; } \
  static inline T2 __habs2(T2 a) { return {__habs(a.x), __habs(a.y)}; } \
  static inline T2 __hgt2(T2 a, T2 b) { return {T(a.x > b.x ? 1.f : 0.f), T(a.y > b.y ? 1.f : 0.f)}; } \
  static inline T2 __hge2(T2 a, T2 b) { return {T(a.x >= b.x ? 1.f : 0.f), T(a.y >= b.y ? 1.f : 0.f)}; } \
  static inline T2 __hlt2(T2 a, T2 b) { return {T(a.x < b.x ? 1.f : 0.f), T(a.y < b.y ? 1.f : 0.f)}; } \
  static inline T2 __hle2(T2 a, T2 b) { return {T(a.x <= b.x ? 1.f : 0.f), T(a.y <= b.y ? 1.f : 0.f)}; } \
  static inline T2 __heq2(T2 a, T2 b) { return {T(a.x == b.x ? 1.f : 0.f), T(a.y == b.y ? 1.f : 0.f)}; } \
  static inline T2 h2exp(T2 a) { return {hexp(a.x), hexp(a.y)}; }
WW_SMALL_FLOAT_FUNCTIONS(__half, __half2)
WW_SMALL_FLOAT_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
static inline float __half2float(__half v) { return v; }
static inline __half __float2half(float v) { return v; }
static inline __half __float2half_rn(float v) { return v; }
static inline __half __double2half(double v) { return ww::odd_float(v); }
static inline __half __int2half_rn(int v) { return (float)v; }
static inline int __half2int_rn(__half v) { return __float2int_rn(v); }
static inline int __half2int_rz(__half v) { return __float2int_rz(v); }
static inline __half2 __floats2half2_rn(float a, float b) { return {a, b}; }
static inline __half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
static inline __half2 __float2half2_rn(float v) { return {v, v}; }
static inline float2 __half22float2(__half2 v) { return {v.x, v.y}; }
static inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
static inline __half2 __half2half2(__half a) { return {a, a}; }
static inline __half2 make_half2(__half a, __half b) { return {a, b}; }
static inline __half __low2half(__half2 v) { return v.x; }
static inline __half __high2half(__half2 v) { return v.y; }
static inline float __low2float(__half2 v) { return v.x; }
static inline float __high2float(__half2 v) { return v.y; }
static inline unsigned short __half_as_ushort(__half v) { return v.stored; }
static inline __half __ushort_as_half(unsigned short v) { __half h; h.stored = v; return h; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.stored; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) { __nv_bfloat16 h; h.stored = v; return h; }
static inline int __bfloat162int_rn(__nv_bfloat16 v) { return __float2int_rn(v); }
static inline int __bfloat162int_rz(__nv_bfloat16 v) { return __float2int_rz(v); }
static inline __nv_bfloat16 __int2bfloat16_rn(int v) { return v; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 v) { return {v, v}; }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
static inline float __bfloat162float(__nv_bfloat16 v) { return v; }
static inline __nv_bfloat16 __float2bfloat16(float v) { return v; }
static inline __nv_bfloat16 __float2bfloat16_rn(float v) { return v; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {a, b}; }
static inline __nv_bfloat162 __float2bfloat162_rn(float v) { return {v, v}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
