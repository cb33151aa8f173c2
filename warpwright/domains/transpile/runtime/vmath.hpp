// Elementary functions of float without branches, so that loops over threads vectorise: exponentials, logarithms, powers, hyperbolic functions and what
// rounds. Most compute in double, whose range holds every power of two that a float knows, subnormal ones too; polynomials are Chebyshev fits of our own.
// Errors in units in the last place (ulp) are against the exact value, for all floats; Inf, NaN and -0 are those of <cmath>.
#define WW_MATH static inline __attribute__((always_inline))  // what stays a call keeps the loop scalar
namespace ww {
WW_MATH double poly(double, double sum) { return sum; }
template <class... Rest> WW_MATH double poly(double x, double sum, double next, Rest... rest) { return poly(x, sum * x + next, rest...); }

struct Power { double scale, less_one; };  // 2^t = scale * (1 + less_one), |less_one| < 0.42, to 3e-10
WW_MATH Power power(double t) {
  t = t > 200. ? 200. : t;  // both ends are beyond what a float holds
  t = t < -200. ? -200. : t;
  const double shifted = t + 0x1.8p52, r = t - (shifted - 0x1.8p52);  // the sum's last bits are the nearest integer
  const double q = poly(r, 1.5297323760701075e-05, 0.0001546144469856913, 0.001333350238616277, 0.009618056678524637, 0.055504108839096185,
                        0.24022650922288757, 0.6931471805599453);
  return {bits<double>((bits<uint64_t>(shifted) << 52) + 0x3ff0000000000000), q * r};
}
WW_MATH double exp2_d(double t) { const Power p = power(t); return p.scale * p.less_one + p.scale; }
WW_MATH double expm1_d(double x) { const Power p = power(x * 1.4426950408889634); return p.scale * p.less_one + (p.scale - 1.); }
// Logarithm to base 2 of a positive, finite, normal x, to 5e-12 of its value; anything for others.
WW_MATH double log2_d(double x) {
  const uint64_t u = bits<uint64_t>(x), shifted = u - 0x3fe6a09e667f3bcd + (1024ull << 52);  // exponent of x / sqrt(1/2), made positive
  const double e = bits<double>((shifted >> 52) | 0x4330000000000000) - (0x1p52 + 1024.);
  const double f = bits<double>(u - (shifted & 0xfff0000000000000) + (1024ull << 52)) - 1.;
  const double s = f / (f + 2.), z = s * s;  // |s| < 0.172
  return poly(z, 0.34071413665191197, 0.411673658400816, 0.5770835677034892, 0.9617966734432283, 2.885390081789993) * s + e;
}
WW_MATH double log1p_d(double x) {
  const double u = 1. + x, lost = x < 1. ? x - (u - 1.) : 0.;
  return log2_d(u) * 0.6931471805599453 + lost;
}

// exp: at most 1.1 ulp, in float, since it is called most. Subnormal answers lose up to half of the last place more.
WW_MATH float exp_f(float x) {
  float c = x < 89.5f ? x : 89.5f;  // beyond both ends the answer is the same; in this form each is one instruction
  c = c > -105.f ? c : -105.f;
  const float n = std::nearbyint(c * 1.44269504f);
  float r = std::fma(n, -0.693145752f, c);
  r = std::fma(n, -1.42860677e-6f, r);
  float p = 1.98756912e-4f;
  p = std::fma(p, r, 1.39819994e-3f);
  p = std::fma(p, r, 8.33345205e-3f);
  p = std::fma(p, r, 4.16657962e-2f);
  p = std::fma(p, r, 1.66666657e-1f);
  p = std::fma(p, r, 5.00000000e-1f);
  p = std::fma(p * r, r, r) + 1.f;
  const int whole = (int)n, half = whole >> 1;  // two factors: 2^128 and subnormal powers have no bits of their own
  const float y = p * bits<float>((half + 127) << 23) * bits<float>((whole - half + 127) << 23);
  return x != x ? x : y;
}
// exp2, exp10, expm1: at most 0.52 ulp.
WW_MATH float exp2_f(float x) { return (float)exp2_d(x); }
WW_MATH float exp10_f(float x) { return (float)exp2_d(x * 3.321928094887362); }
WW_MATH float expm1_f(float x) { return std::copysign((float)expm1_d(x), x); }
// log: at most 2 ulp, in float.
WW_MATH float log_limits(float x, float y) { return x > 0.f ? (x < INFINITY ? y : x) : (x == 0.f ? -INFINITY : NAN); }
WW_MATH float log_f(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const int u = bits<int>(subnormal ? x * 8388608.f : x), e0 = (u >> 23) - (subnormal ? 149 : 126);
  float m = bits<float>((u & 0x007fffff) | 0x3f000000);
  const bool low = m < 0.707106781f;
  const float e = (float)(low ? e0 - 1 : e0);
  m = low ? m + m - 1.f : m - 1.f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = std::fma(p, m, -1.1514610310e-1f);
  p = std::fma(p, m, 1.1676998740e-1f);
  p = std::fma(p, m, -1.2420140846e-1f);
  p = std::fma(p, m, 1.4249322787e-1f);
  p = std::fma(p, m, -1.6668057665e-1f);
  p = std::fma(p, m, 2.0000714765e-1f);
  p = std::fma(p, m, -2.4999993993e-1f);
  p = std::fma(p, m, 3.3333331174e-1f);
  float y = m * z * p;
  y = std::fma(e, -2.12194440e-4f, y);
  y = std::fma(z, -0.5f, y);
  y = m + y;
  return log_limits(x, std::fma(e, 0.693359375f, y));
}
// log2, log10, log1p: at most 0.51 ulp.
WW_MATH float log2_f(float x) { return log_limits(x, (float)log2_d(x)); }
WW_MATH float log10_f(float x) { return log_limits(x, (float)(log2_d(x) * 0.3010299956639812)); }
WW_MATH float log1p_f(float x) {
  const float y = (float)log1p_d(x);
  return x > -1.f ? (x < INFINITY ? std::copysign(y, x) : x) : (x == -1.f ? -INFINITY : NAN);
}
// sinh, cosh, tanh: at most 0.52 ulp.
WW_MATH float sinh_f(float x) {
  const double m = expm1_d(std::fabs(x));
  return std::copysign((float)(0.5 * (m + m / (m + 1.))), x);
}
WW_MATH float cosh_f(float x) {
  const double e = exp2_d(std::fabs(x) * 1.4426950408889634);
  return (float)(0.5 * e + 0.5 / e);
}
WW_MATH float tanh_f(float x) {
  const double m = expm1_d(2. * std::fabs(x));
  return std::copysign((float)(m / (m + 2.)), x);
}
// asinh, acosh, atanh: at most 0.51 ulp.
WW_MATH float asinh_f(float x) {
  const double a = std::fabs(x), s = a * a;
  const float y = (float)log1p_d(a + s / (1. + std::sqrt(s + 1.)));
  return std::fabs(x) < INFINITY ? std::copysign(y, x) : x;
}
WW_MATH float acosh_f(float x) {
  const double d = x, t = d - 1.;
  const float y = (float)log1p_d(t + std::sqrt(t * (d + 1.)));
  return x >= 1.f ? (x < INFINITY ? y : x) : NAN;
}
WW_MATH float atanh_f(float x) {
  const double a = std::fabs(x);
  const float y = (float)(0.5 * log1p_d((a + a) / (1. - a)));
  return std::copysign(a < 1. ? y : (a == 1. ? INFINITY : NAN), x);
}
// c ? a : b, which gcc turns into no branch; in pow, where the exponent is often the same for all threads, it makes branches of ?: that it cannot undo.
WW_MATH double pick(bool c, double a, double b) {
  const uint64_t mask = -(uint64_t)c;
  return bits<double>((bits<uint64_t>(a) & mask) | (bits<uint64_t>(b) & ~mask));
}
// pow: at most 0.52 ulp; squares, cubes and reciprocals by a constant exponent are products and quotients, at most 1.5 ulp.
WW_MATH float pow_f(float x, double y) {
  if (__builtin_constant_p(y) && y == 2.) return x * x;
  if (__builtin_constant_p(y) && y == 3.) return x * x * x;
  if (__builtin_constant_p(y) && y == -1.) return 1.f / x;
  const double d = x, a = std::fabs(d);
  const double l = pick(a == 0., -INFINITY, pick(a < INFINITY, log2_d(a), a));  // also of NaN
  const double v = pick(std::fabs(y) > 1e30, std::copysign(1e30, y), y);  // 1 to the power of Inf is 1
  const bool whole = std::nearbyint(y) == y, odd = whole & (std::nearbyint(0.5 * y) != 0.5 * y);
  double p = exp2_d(v * l);
  p = pick(odd, std::copysign(p, d), p);
  p = pick((d < 0.) & (a < INFINITY) & !whole, NAN, p);
  return (float)pick((y == 0.) | (d == 1.), 1., p);
}
// cbrt, rcbrt: at most 0.51 ulp. hypot, rhypot: at most 0.51 ulp.
WW_MATH float cbrt_f(float x) {
  const float y = (float)exp2_d(log2_d(std::fabs(x)) * 0.3333333333333333);  // of 0 and Inf, beyond both ends of power()
  return x != x ? x : std::copysign(y, x);
}
WW_MATH float rcbrt_f(float x) {
  const float y = (float)exp2_d(log2_d(std::fabs(x)) * -0.3333333333333333);
  return x != x ? x : std::copysign(y, x);
}
WW_MATH float hypot_f(float x, float y) {
  const double a = x, b = y;
  const float h = (float)std::sqrt(a * a + b * b);
  return std::fabs(x) == INFINITY || std::fabs(y) == INFINITY ? INFINITY : h;
}
WW_MATH float rhypot_f(float x, float y) {
  const double a = x, b = y;
  const float h = (float)(1. / std::sqrt(a * a + b * b));
  return std::fabs(x) == INFINITY || std::fabs(y) == INFINITY ? 0.f : h;
}
// fdim: at most 0.5 ulp. fmod: exact.
WW_MATH float fdim_f(float x, float y) { return x <= y ? 0.f : x - y; }
WW_MATH float fmod_f(float x, float y) {
  const double b = std::fabs(y), inverse = 1. / b;
  double r = std::fabs(x);
  // Each step takes 50 bits off a quotient of up to 277, and every rest is a multiple of the quotient's last place times that of y: it has at most 26 bits.
  r = std::fma(-std::trunc(r * inverse), b, r);
  r = std::fma(-std::trunc(r * inverse), b, r);
  r = std::fma(-std::trunc(r * inverse), b, r);
  r = std::fma(-std::trunc(r * inverse), b, r);
  r = std::fma(-std::trunc(r * inverse), b, r);
  r = std::fma(-std::trunc(r * inverse), b, r);
  r = r < 0. ? r + b : r;
  r = r >= b ? r - b : r;
  return std::fabs(y) == INFINITY && std::fabs(x) < INFINITY ? x : std::copysign((float)r, x);
}
}  // namespace ww

// As many floats as a register holds, for regions whose values stay in registers.
namespace ww {
#if defined(__AVX512F__)
static constexpr int width = 16;
#elif defined(__AVX__)
static constexpr int width = 8;
#else
static constexpr int width = 4;
#endif
typedef float floats __attribute__((vector_size(width * 4)));
static inline floats load(const float* p) { floats v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline void store(float* p, floats v) { __builtin_memcpy(p, &v, sizeof v); }
// How many registers a row of threads takes at once, and how many rows: at most 8 values live in registers.
constexpr int vectors_of(int bx) { return bx / width >= 4 ? 4 : bx / width; }
constexpr int rows_of(int bx, int by) { const int most = vectors_of(bx) >= 4 ? 2 : 4; return by % most == 0 ? most : (by % 2 == 0 ? 2 : 1); }
constexpr bool fits_registers(int bx) { return bx >= width && bx % (width * vectors_of(bx)) == 0; }
}  // namespace ww
