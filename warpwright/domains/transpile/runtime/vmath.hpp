// Elementary functions without branches, so that loops over threads vectorise. Errors in units in the last place (ulp), against float64,
// over the stated range; outside of it the limits are those of <cmath>.
namespace ww {
// exp: at most 1.1 ulp on [-87.3, 88.7]; 0 below -103.9 or so, inf above 88.72. Subnormal answers lose up to half of the last places.
static inline float exp_f(float x) {
  const float n = std::nearbyint(x * 1.44269504f);
  const float c = n < -150.f ? -150.f : (n > 129.f ? 129.f : n);
  float r = std::fma(c, -0.693145752f, x);
  r = std::fma(c, -1.42860677e-6f, r);
  r = r < -1.f ? -1.f : (r > 1.f ? 1.f : r);
  float p = 1.98756912e-4f;
  p = std::fma(p, r, 1.39819994e-3f);
  p = std::fma(p, r, 8.33345205e-3f);
  p = std::fma(p, r, 4.16657962e-2f);
  p = std::fma(p, r, 1.66666657e-1f);
  p = std::fma(p, r, 5.00000000e-1f);
  p = std::fma(p * r, r, r) + 1.f;
  const int whole = (int)c, half = whole >> 1;  // two factors: 2^128 and subnormal powers have no bits of their own
  const float y = p * bits<float>((half + 127) << 23) * bits<float>((whole - half + 127) << 23);
  return x != x ? x : y;
}
// tanh: at most 3 ulp.
static inline float tanh_f(float x) {
  const float a = std::fabs(x), b = a > 10.f ? 10.f : a;
  const float s = b * b;
  float p = -5.70498872745e-3f;
  p = std::fma(p, s, 2.06390887954e-2f);
  p = std::fma(p, s, -5.37397155531e-2f);
  p = std::fma(p, s, 1.33314422036e-1f);
  p = std::fma(p, s, -3.33332819422e-1f);
  const float small = std::fma(p * s, b, b), large = 1.f - 2.f / (exp_f(2.f * b) + 1.f);
  const float y = b < 0.625f ? small : large;
  return x != x ? x : std::copysign(y, x);
}
// log: at most 2 ulp for normal numbers; subnormals count as 0.
static inline float log_f(float x) {
  const int u = bits<int>(x), e0 = (u >> 23) - 126;
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
  y = std::fma(e, 0.693359375f, y);
  y = x < 1.17549435e-38f ? -INFINITY : y;
  y = x == INFINITY ? x : y;
  return x < 0.f || x != x ? NAN : y;
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
