// Elementary functions of float without branches, so that loops over threads vectorise: exponentials, logarithms, powers, hyperbolic functions and what
// rounds; polynomials are Chebyshev fits of our own. Those that are called most compute in float, twice as many to a register; the others in double, whose
// range holds every power of two that a float knows, subnormal ones too. Errors in units in the last place (ulp) are against the exact value, for all
// floats, and within CUDA's own (of which the guide states that of the rounded answer); Inf, NaN and -0 are those of <cmath>.
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

// In float: the last argument is the constant term.
WW_MATH float poly_f(float, float sum) { return sum; }
template <class... Rest> WW_MATH float poly_f(float x, float sum, float next, Rest... rest) { return poly_f(x, std::fma(sum, x, next), rest...); }
struct Whole { float n; int last; };  // nearest integer to a product below 2^22, and its last 9 bits, which << 23 brings to an exponent's place
WW_MATH Whole whole(float x, float factor) {
  const float shifted = std::fma(x, factor, 0x1.8p23f);
  return {shifted - 0x1.8p23f, bits<int>(shifted)};
}
WW_MATH float power_f(Whole w) { return bits<float>((int)((unsigned)w.last << 23) + (127 << 23)); }  // 2^n, -126 <= n <= 127
WW_MATH float less_ln2(float x, float n) { return std::fma(n, -1.42860677e-6f, std::fma(n, -0.693145752f, x)); }
// c (1 + less_one) 2^n for -190 <= n <= 190 in two factors: 2^128 and subnormal powers have no bits of their own.
WW_MATH float scaled(float c, float less_one, Whole w) {
  const bool down = w.n < 0.f;
  const float s = c * bits<float>((int)((unsigned)w.last << 23) + (down ? (127 + 63) << 23 : (127 - 63) << 23));
  return std::fma(s, less_one, s) * (down ? 0x1p-63f : 0x1p63f);
}
WW_MATH float expm1_r(float r) {  // |r| < 0.35
  const float p = poly_f(r, 0.000199442715f, 0.00139327231f, 0.00833320804f, 0.0416664891f, 0.166666672f, 0.5f);
  return std::fma(p * r, r, r);
}
WW_MATH float between(float low, float x, float high) {  // NaN stays; in this form each end is one instruction
  x = high < x ? high : x;
  return low > x ? low : x;
}
// exp: at most 1.05 ulp, exp2: 1.0, exp10: 1.25. Beyond the ends the answer is 0 or Inf as at them.
WW_MATH float exp_f(float x) {
  const float c = between(-105.f, x, 89.5f);
  const Whole w = whole(c, 1.44269504f);
  const float r = less_ln2(c, w.n), p = poly_f(r, 0.00139422179f, 0.00836886093f, 0.0416663848f, 0.166665196f, 0.5f);
  return scaled(1.f, std::fma(p * r, r, r), w);
}
WW_MATH float exp2_f(float x) {
  const float c = between(-151.f, x, 129.f);
  const Whole w = whole(c, 1.f);
  return scaled(1.f, expm1_r((c - w.n) * 0.693147182f), w);
}
WW_MATH float exp10_f(float x) {
  const float c = between(-46.f, x, 39.f);
  const Whole w = whole(c, 3.32192802f);
  const float r = std::fma(w.n, 1.43209891e-8f, std::fma(w.n, -0.30103001f, c));
  return scaled(1.f, expm1_r(r * 2.30258512f), w);
}
// expm1: at most 1.45 ulp.
WW_MATH float expm1_f(float x) {
  const float c = between(-18.f, x, 88.8f);
  const Whole w = whole(c, 1.44269504f);
  const float half = power_f({w.n, w.last - 1});
  return std::copysign(2.f * std::fma(half, expm1_r(less_ln2(c, w.n)), half - 0.5f), x);
}
// log: at most 0.93 ulp, log1p: 1.4.
WW_MATH float log_limits(float x, float y) { return x > 0.f ? (x < INFINITY ? y : x) : (x == 0.f ? -INFINITY : NAN); }
WW_MATH int exponent_of(float x) { return (bits<int>(x) - 0x3f2aaaab) & (int)0xff800000; }  // e << 23, x / 2^e in [2/3, 4/3)
WW_MATH float log_of(float m, float lost, float e) {  // of (1 + m + lost) 2^e, lost below an ulp of m
  const float p = poly_f(m, -0.128742889f, 0.139867082f, -0.121883787f, 0.140053406f, -0.166801795f, 0.200104445f, -0.249998048f, 0.333332151f, -0.5f);
  return std::fma(e, 0.693147182f, m + std::fma(p * m, m, lost));
}
WW_MATH float log_f(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const float c = subnormal ? x * 8388608.f : x;
  const int e = exponent_of(c);
  return log_limits(x, log_of(bits<float>(bits<int>(c) - e) - 1.f, 0.f, std::fma((float)e, 0x1p-23f, subnormal ? -23.f : 0.f)));
}
WW_MATH float log1p_f(float x) {
  const float u = 1.f + x, lost = x < 1.f ? x - (u - 1.f) : 1.f - (u - x);
  const int e = exponent_of(u), most = e < 126 << 23 ? e : 126 << 23;  // of larger u nothing that is lost counts
  const float scale = bits<float>((127 << 23) - most), high = bits<float>(bits<int>(u) - e) - 1.f, m = std::fma(lost, scale, high);
  const float y = log_of(m, std::fma(lost, scale, high - m), (float)e * 0x1p-23f);
  return x > -1.f ? (x < INFINITY ? std::copysign(y, x) : x) : (x == -1.f ? -INFINITY : NAN);
}
// log2, log10: at most 0.51 ulp.
WW_MATH float log2_f(float x) { return log_limits(x, (float)log2_d(x)); }
WW_MATH float log10_f(float x) { return log_limits(x, (float)(log2_d(x) * 0.3010299956639812)); }
// sinh: at most 2.2 ulp, cosh: 1.5, tanh: 1.35.
WW_MATH float sinh_f(float x) {
  const float a = between(0.f, std::fabs(x), 89.5f);
  const Whole w = whole(a, 1.44269504f);
  const float quarter = power_f({w.n, w.last - 2});
  const float h = 2.f * std::fma(quarter, expm1_r(less_ln2(a, w.n)), quarter - 0.25f), t = h < 1e30f ? h : 1e30f;  // (e^a - 1) / 2
  return std::copysign(a < 1e-4f ? a : h + t / (2.f * t + 1.f), x);
}
WW_MATH float cosh_f(float x) {
  const float a = between(0.f, std::fabs(x), 89.5f);
  const Whole w = whole(a, 1.44269504f);
  const float quarter = power_f({w.n, w.last - 2}), e = std::fma(quarter, expm1_r(less_ln2(a, w.n)), quarter);
  return 2.f * e + 0.125f / e;
}
WW_MATH float tanh_f(float x) {
  const float a = between(0.f, std::fabs(x), 9.1f), z = a * a;
  const Whole w = whole(a, 2.88539008f);
  const float scale = power_f(w);
  const float large = 1.f - 2.f / std::fma(scale, expm1_r(less_ln2(2.f * a, w.n)), scale + 1.f);
  const float small = std::fma(a * z, poly_f(z, -0.00624606479f, 0.0210525058f, -0.0538478531f, 0.133325458f, -0.333333164f), a);
  return std::copysign(a < 0.55f ? small : large, x);
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
