// Functions of device code that few kernels call: conversions with a direction, sums of two products, averages, inverses of the error function.
namespace ww {
// v in F: the nearest, or where that lies on the other side, its neighbour. mode: 'n' nearest, 'z' to zero, 'd' down, 'u' up. 64 bits are exact in a long double.
template <class F> static F directed(long double v, char mode) {
  const F r = (F)v;
  const bool down = mode == 'd' || (mode == 'z' && v > 0);
  if (mode == 'n' || (down ? (long double)r <= v : (long double)r >= v)) return r;
  return std::nextafter(r, down ? -std::numeric_limits<F>::infinity() : std::numeric_limits<F>::infinity());
}
// The x at which erfc is q, for q of 0 to 2: a rational guess, then Halley's method (Numerical Recipes, 6.2.2), here thrice.
static inline double erfc_inverse(double q) {
  if (!(q >= 0 && q <= 2)) return std::numeric_limits<double>::quiet_NaN();
  if (q == 0 || q == 2) return q == 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  if (q > 1) return -erfc_inverse(2 - q);
  const double t = std::sqrt(-2 * std::log(q / 2));
  double x = -0.70711 * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
  for (int i = 0; i < 3; ++i) { const double error = std::erfc(x) - q; x += error / (1.12837916709551257 * std::exp(-x * x) - x * error); }
  return x;
}
static inline double erf_inverse(double p) {
  if (std::fabs(p) > 0.5) return p > 0 ? erfc_inverse(1 - p) : -erfc_inverse(1 + p);
  double x = 0.886226925452758 * p * (1 + 0.2617993877991494 * p * p);  // the first two terms of its series
  for (int i = 0; i < 3; ++i) { const double error = std::erf(x) - p; x -= error / (1.12837916709551257 * std::exp(-x * x) + x * error); }
  return x;
}
}  // namespace ww
#define WW_TO(I, FROM, F, TO, MODE, LETTER) static inline F __##FROM##2##TO##_r##MODE(I v) { return ww::directed<F>((long double)v, LETTER); }
#define WW_DIRECTED(I, FROM, F, TO) WW_TO(I, FROM, F, TO, d, 'd') WW_TO(I, FROM, F, TO, u, 'u')
WW_DIRECTED(int, int, float, float) WW_TO(int, int, float, float, z, 'z') WW_DIRECTED(unsigned, uint, float, float) WW_TO(unsigned, uint, float, float, z, 'z') WW_DIRECTED(long long, ll, float, float) WW_TO(long long, ll, float, float, z, 'z')
WW_DIRECTED(unsigned long long, ull, float, float) WW_TO(unsigned long long, ull, float, float, z, 'z') WW_DIRECTED(long long, ll, double, double) WW_TO(long long, ll, double, double, z, 'z')
WW_DIRECTED(unsigned long long, ull, double, double) WW_TO(unsigned long long, ull, double, double, z, 'z') WW_TO(unsigned long long, ull, double, double, n, 'n')
#undef WW_TO
#undef WW_DIRECTED
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned n) { return n >= 32 ? low : (unsigned)((((unsigned long long)high << 32 | low) << n) >> 32); }
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned n) { return n >= 32 ? high : (unsigned)(((unsigned long long)high << 32 | low) >> n); }
static inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static inline unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
static inline unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
static inline int __dp2a_lo(int a, int b, int c) { return (int)((unsigned)c + (unsigned)((short)a * (signed char)b) + (unsigned)((short)(a >> 16) * (signed char)(b >> 8))); }
static inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
static inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff); }
static inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
static inline int __dp2a_lo(short2 a, char4 b, int c) { return __dp2a_lo(ww::bits<int>(a), ww::bits<int>(b), c); }
static inline int __dp2a_hi(short2 a, char4 b, int c) { return __dp2a_hi(ww::bits<int>(a), ww::bits<int>(b), c); }
static inline unsigned __dp2a_lo(ushort2 a, uchar4 b, unsigned c) { return __dp2a_lo(ww::bits<unsigned>(a), ww::bits<unsigned>(b), c); }
static inline unsigned __dp2a_hi(ushort2 a, uchar4 b, unsigned c) { return __dp2a_hi(ww::bits<unsigned>(a), ww::bits<unsigned>(b), c); }
static inline unsigned __fns(unsigned mask, unsigned base, int offset) {  // where the n-th bit is set from a place on; ~0 where there is none
  if (offset == 0) return base < 32 && (mask >> base & 1) ? base : 0xffffffffu;
  int left = offset < 0 ? -offset : offset;
  for (int at = (int)base; at >= 0 && at < 32; at += offset < 0 ? -1 : 1) if ((mask >> at & 1) && --left == 0) return (unsigned)at;
  return 0xffffffffu;
}
static inline size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
static inline void __assume(bool holds) { if (!holds) __builtin_unreachable(); }
static inline double norm4d(double a, double b, double c, double d) { return std::hypot(std::hypot(a, b), std::hypot(c, d)); }
static inline double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
static inline double erfinv(double v) { return ww::erf_inverse(v); }
static inline float erfinvf(float v) { return (float)ww::erf_inverse(v); }
static inline double erfcinv(double v) { return ww::erfc_inverse(v); }
static inline float erfcinvf(float v) { return (float)ww::erfc_inverse(v); }
static inline double normcdfinv(double v) { return -1.4142135623730951 * ww::erfc_inverse(2 * v); }
static inline float normcdfinvf(float v) { return (float)normcdfinv((double)v); }
static inline double cyl_bessel_i0(double v) { return std::cyl_bessel_i(0, std::fabs(v)); }
static inline float cyl_bessel_i0f(float v) { return (float)cyl_bessel_i0((double)v); }
static inline double cyl_bessel_i1(double v) { return std::copysign(std::cyl_bessel_i(1, std::fabs(v)), v); }
static inline float cyl_bessel_i1f(float v) { return (float)cyl_bessel_i1((double)v); }
static inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
static inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
