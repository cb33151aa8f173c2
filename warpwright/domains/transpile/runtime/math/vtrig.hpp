// Trigonometric functions, their inverses (both in double) and the error functions (in float) without branches; as in vmath.hpp, for all floats.
namespace ww {
struct Turn { double r; uint64_t quarters; };  // x = r + quarters * pi/2, |r| <= pi/4; the last two bits of quarters count
constexpr double half_pi = 1.5707963267948966, pi = 3.141592653589793;
// Cody and Waite with two parts of pi/2, whose products a fused multiply-add keeps: |x| < 2^50.
WW_MATH Turn turn_near(double x) {
  const double shifted = x * 0.6366197723675814 + 0x1.8p52, n = shifted - 0x1.8p52;
  return {std::fma(-n, 6.123233995736766e-17, std::fma(-n, half_pi, x)), bits<uint64_t>(shifted)};
}
// Payne and Hanek for |x| >= 2^50, a multiple of 2^27: the bits of 2/pi from the 26th on, in four pieces of 29 bits, whose products are exact, and the rest.
// r has an absolute error of 2^-51: answers below 2^-26 may lose places there.
WW_MATH double part(double t) { return t - std::nearbyint(t); }
WW_MATH Turn turn_far(double x) {
  const double sum = part(x * 0x1.b939105p-28) + part(x * 0x1.29fc274p-58) + part(x * 0x1.7d1f534p-86) + part(x * 0x1.bb81b6cp-115);
  const double t = 4. * (sum + x * 0x1.4acc9e21c821p-145), shifted = t + 0x1.8p52;
  return {(t - (shifted - 0x1.8p52)) * half_pi, bits<uint64_t>(shifted)};
}
WW_MATH Turn turn(double x) {
  const Turn near = turn_near(x), far = turn_far(x);
  const bool is_near = std::fabs(x) < 0x1p50;
  return {is_near ? near.r : far.r, is_near ? near.quarters : far.quarters};
}
WW_MATH double sin_r(double r, double z) {
  return r * (1. + z * poly(z, 2.7249895230611676e-06, -0.000198400864995936, 0.008333331874273714, -0.16666666663854168));
}
WW_MATH double cos_r(double z) {
  return 1. + z * poly(z, 2.4463754730095443e-05, -0.0013887588896733915, 0.041666650639724655, -0.49999999969106984);
}
WW_MATH float sin_of(Turn t, uint64_t quarters) {
  const double z = t.r * t.r, y = (quarters & 1) ? cos_r(z) : sin_r(t.r, z);
  return (float)bits<double>(bits<uint64_t>(y) ^ ((quarters & 2) << 62));
}
WW_MATH float tan_of(Turn t) {
  const double z = t.r * t.r, s = sin_r(t.r, z), c = cos_r(z);
  const bool odd = t.quarters & 1;
  return (float)((odd ? -c : s) / (odd ? s : c));
}
// sin, cos, tan: at most 0.55 ulp. near_: the same below 2^50, where CUDA's __sinf has long lost all places; beyond, any number.
WW_MATH float sin_f(float x) { const Turn t = turn(x); return sin_of(t, t.quarters); }
WW_MATH float cos_f(float x) { const Turn t = turn(x); return sin_of(t, t.quarters + 1); }
WW_MATH float tan_f(float x) { return tan_of(turn(x)); }
WW_MATH float near_sin_f(float x) { const Turn t = turn_near(x); return sin_of(t, t.quarters); }
WW_MATH float near_cos_f(float x) { const Turn t = turn_near(x); return sin_of(t, t.quarters + 1); }
WW_MATH float near_tan_f(float x) { return tan_of(turn_near(x)); }
// sinpi, cospi: at most 0.52 ulp.
WW_MATH Turn turn_of_halves(float x) {
  const double t = std::fabs(x) < 0x1p25f ? 2. * x : 0. * x, shifted = t + 0x1.8p52;  // larger ones are even
  return {(t - (shifted - 0x1.8p52)) * half_pi, bits<uint64_t>(shifted)};
}
WW_MATH float sinpi_f(float x) {
  const Turn t = turn_of_halves(x);
  const float y = sin_of(t, t.quarters);
  return y == 0.f ? std::copysign(y, x) : y;
}
WW_MATH float cospi_f(float x) { const Turn t = turn_of_halves(x); return sin_of(t, t.quarters + 1) + 0.f; }  // its zeros are +0
WW_MATH void both_of(Turn t, float* sine, float* cosine) { *sine = sin_of(t, t.quarters); *cosine = sin_of(t, t.quarters + 1); }
WW_MATH void sincos_f(float x, float* sine, float* cosine) { both_of(turn(x), sine, cosine); }
WW_MATH void near_sincos_f(float x, float* sine, float* cosine) { both_of(turn_near(x), sine, cosine); }
WW_MATH void sincospi_f(float x, float* sine, float* cosine) { *sine = sinpi_f(x); *cosine = cospi_f(x); }

// atan, atan2: at most 0.51 ulp.
WW_MATH double atan_d(double x) {  // 0 <= x <= 1
  const double z = x * x;
  return x * poly(z, 0.001057607438057242, -0.007030669470424213, 0.021912945865448393, -0.04392841073326746, 0.06685281517877424,
                  -0.08785043282362845, 0.1105077127584966, -0.14278576024807985, 0.19999558100363982, -0.33333322488911593, 0.9999999995535376);
}
WW_MATH float atan_f(float x) {
  const double a = std::fabs(x);
  const bool large = a > 1.;
  const double y = atan_d((large ? 1. : a) / (large ? a : 1.));
  return std::copysign((float)(large ? half_pi - y : y), x);
}
WW_MATH float atan2_f(float y, float x) {
  const double a = std::fabs(x), b = std::fabs(y);
  const bool steep = b > a;
  const double n = steep ? a : b, d = steep ? b : a;
  const double q = n == d ? (d == 0. ? 0. : 1.) : n / d;  // both 0 or both Inf
  double t = atan_d(q);
  t = steep ? half_pi - t : t;
  t = bits<int>(x) < 0 ? pi - t : t;
  return x != x || y != y ? NAN : std::copysign((float)t, y);
}
// asin, acos: at most 0.51 ulp.
WW_MATH double asin_d(double s, double z) {  // of s in [0, 1/2], z = s * s
  return s + s * z * poly(z, 0.030974540371355073, 0.010574415516912909, 0.023611817008891752, 0.030269138728589183, 0.04464766388813485,
                          0.07499992404401838, 0.16666666686085643);
}
WW_MATH float asin_f(float x) {
  const double a = std::fabs(x);
  const bool large = a > 0.5;
  const double z = large ? 0.5 - 0.5 * a : a * a, y = asin_d(large ? std::sqrt(z) : a, z);
  return std::copysign((float)(large ? half_pi - 2. * y : y), x);
}
WW_MATH float acos_f(float x) {
  const double d = x, a = std::fabs(d);
  const bool large = a > 0.5;
  const double z = large ? 0.5 - 0.5 * a : a * a, y = asin_d(large ? std::sqrt(z) : a, z);
  const double far = d > 0. ? 2. * y : pi - 2. * y, near = d > 0. ? half_pi - y : half_pi + y;
  return (float)(large ? far : near);
}

// erf: at most 1.7 ulp, as 1 - e^(-a - a q(a)) of a = |x|. erfc: at most 3.1 ulp. normcdf: at most 3.7 ulp.
WW_MATH float erf_f(float x) {
  const float a = between(0.f, std::fabs(x), 4.f);
  const float q = poly_f(a, -9.38914764e-06f, 0.000118869109f, -0.00063738256f, 0.00167569797f, -0.00016951513f, -0.0191478208f, 0.102776304f,
                         0.636619568f, 0.128379166f);
  const float y = std::fma(q, a, a), lost = std::fma(q, a, a - y);
  const Whole w = whole(y, -1.44269504f);
  const float scale = power_f(w);
  return std::copysign(std::fma(-scale, expm1_r(less_ln2(-y, w.n) - lost), 1.f - scale), x);
}
// share * erfc(x + low), low below an ulp of x: share * e^(-a a) c(a), where c is a polynomial in u = 1 / (1 + 3/8 a), whose error is put right by dc/du.
WW_MATH float erfc_share(float x, float low, float share) {
  const float a = between(0.f, std::fabs(x), 10.2f);
  const float d = std::fma(0.375f, a, 1.f), d_lost = std::fma(0.375f, a, 1.f - d), u = 1.f / d;
  const float u_lost = u * std::fma(-d_lost, u, std::fma(-d, u, 1.f));
  const float p = poly_f(u, 0.0614279881f, -0.286807626f, 0.43134892f, -0.228244528f, 0.272937566f, 0.121832512f, 0.205231383f, 0.210660964f, 0.211612821f);
  const float c = std::fma(p, u, u_lost * poly_f(u, 4.11067f, -1.7651f, 0.55215f));
  const float s = a * a, s_lost = std::fma(a, a, -s) + 2.f * a * std::copysign(1.f, x) * low;
  const Whole w = whole(s, -1.44269504f);
  const float y = scaled(share * c, expm1_r(less_ln2(-s, w.n) - s_lost), w);
  return x < 0.f ? 2.f * share - y : y;
}
WW_MATH float erfc_f(float x) { return erfc_share(x, 0.f, 1.f); }
WW_MATH float normcdf_f(float x) {
  const float c = between(-15.f, x, 15.f), z = c * -0.707106769f;
  return erfc_share(z, std::fma(c, -0.707106769f, -z) + c * -1.21016175e-8f, 0.5f);
}
}  // namespace ww
