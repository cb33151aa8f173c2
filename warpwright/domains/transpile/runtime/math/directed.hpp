// Arithmetic that is rounded down, up or towards zero: the nearest result, and one step from it where the exact one lies on its other side. What is left of
// the exact result is itself exact (Dekker's and Knuth's sums; fused products), or has its sign.
namespace ww {
template <class T> static inline T down(T r, T rest) { return rest < 0 ? std::nextafter(r, -std::numeric_limits<T>::infinity()) : r; }
template <class T> static inline T up_from(T r, T rest) { return rest > 0 ? std::nextafter(r, std::numeric_limits<T>::infinity()) : r; }
template <class T> static inline T to_zero(T r, T rest) { return r > 0 ? down(r, rest) : r < 0 ? up_from(r, rest) : r; }
template <class T> static inline T beyond(T r, bool finite, T rest) { return finite && std::isinf(r) ? -r : rest; }  // the exact one is finite
template <class T> struct Rounded { T r, rest; };
template <class T> static inline Rounded<T> sum_of(T a, T b) {
  const T s = a + b, as = s - b, bs = s - as;
  return {s, beyond(s, std::isfinite(a) && std::isfinite(b), (a - as) + (b - bs))};
}
template <class T> static inline Rounded<T> product_of(T a, T b) { const T r = a * b; return {r, beyond(r, std::isfinite(a) && std::isfinite(b), std::fma(a, b, -r))}; }
template <class T> static inline Rounded<T> quotient_of(T a, T b) {
  const T r = a / b, rest = std::fma(-r, b, a);
  return {r, beyond(r, std::isfinite(a) && b != 0, b < 0 ? -rest : rest)};
}
template <class T> static inline Rounded<T> root_of(T a) { const T r = std::sqrt(a); return {r, std::fma(-r, r, a)}; }
static inline Rounded<float> float_of(double v, double rest = 0) {
  const float r = (float)v;
  const double left = v != (double)r ? v - (double)r : rest;
  return {r, beyond(r, std::isfinite(v), (float)((left > 0) - (left < 0)))};
}
static inline Rounded<float> fused_of(float a, float b, float c) { const Rounded<double> sum = sum_of((double)a * b, (double)c); return float_of(sum.r, sum.rest); }
}  // namespace ww
#define WW_DIRECTED(NAME, T, PARAMETERS, VALUE) \
  static inline T NAME##_rd PARAMETERS { const auto ww_r = VALUE; return ww::down(ww_r.r, ww_r.rest); } \
  static inline T NAME##_ru PARAMETERS { const auto ww_r = VALUE; return ww::up_from(ww_r.r, ww_r.rest); } \
  static inline T NAME##_rz PARAMETERS { const auto ww_r = VALUE; return ww::to_zero(ww_r.r, ww_r.rest); }
WW_DIRECTED(__fadd, float, (float a, float b), ww::sum_of(a, b))
WW_DIRECTED(__fsub, float, (float a, float b), ww::sum_of(a, -b))
WW_DIRECTED(__fmul, float, (float a, float b), ww::product_of(a, b))
WW_DIRECTED(__fdiv, float, (float a, float b), ww::quotient_of(a, b))
WW_DIRECTED(__frcp, float, (float b), ww::quotient_of(1.0f, b))
WW_DIRECTED(__fsqrt, float, (float a), ww::root_of(a))
WW_DIRECTED(__fmaf, float, (float a, float b, float c), ww::fused_of(a, b, c))
WW_DIRECTED(__dadd, double, (double a, double b), ww::sum_of(a, b))
WW_DIRECTED(__dsub, double, (double a, double b), ww::sum_of(a, -b))
WW_DIRECTED(__dmul, double, (double a, double b), ww::product_of(a, b))
WW_DIRECTED(__ddiv, double, (double a, double b), ww::quotient_of(a, b))
WW_DIRECTED(__drcp, double, (double b), ww::quotient_of(1.0, b))
WW_DIRECTED(__dsqrt, double, (double a), ww::root_of(a))
WW_DIRECTED(__double2float, float, (double v), ww::float_of(v))
#undef WW_DIRECTED
