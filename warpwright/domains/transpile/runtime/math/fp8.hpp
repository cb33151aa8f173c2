// Floats of 8 bits as storage: conversions from and to halves and floats, by the values of the format (OCP OFP8), to the nearest, ties to even.
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
namespace ww {
static inline float fp8_value(unsigned char v, __nv_fp8_interpretation_t kind) {
  const int mantissa_bits = kind == __NV_E4M3 ? 3 : 2, bias = kind == __NV_E4M3 ? 7 : 15, all = (1 << mantissa_bits) - 1;
  const int exponent = (v & 127) >> mantissa_bits, mantissa = v & all;
  float r = exponent ? std::ldexp(1.0f + (float)mantissa / (all + 1), exponent - bias) : std::ldexp((float)mantissa / (all + 1), 1 - bias);
  if (kind == __NV_E4M3 ? (v & 127) == 127 : exponent == 31 && mantissa) r = NAN;
  else if (kind == __NV_E5M2 && exponent == 31) r = INFINITY;
  return v & 128 ? -r : r;
}
static inline unsigned char fp8_of(double v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  const unsigned char sign = std::signbit(v) ? 128 : 0, largest = kind == __NV_E4M3 ? 126 : 123, over = kind == __NV_E4M3 ? 127 : 124;
  if (v != v) return sign | 127;
  const double size = std::fabs(v), most = fp8_value(largest, kind), step = most - fp8_value(largest - 1, kind);
  if (size >= most + step / 2 && (saturate == __NV_SATFINITE || size > most + step / 2)) return sign | (saturate == __NV_SATFINITE ? largest : over);
  int low = 0, high = largest;  // values grow with their bits
  while (low < high) { const int mid = (low + high + 1) / 2; if (fp8_value((unsigned char)mid, kind) <= size) low = mid; else high = mid - 1; }
  if (low < largest) {
    const double below = size - fp8_value((unsigned char)low, kind), above = fp8_value((unsigned char)(low + 1), kind) - size;
    if (above < below || (above == below && low & 1)) ++low;
  }
  return sign | (unsigned char)low;
}
}  // namespace ww
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t v, __nv_fp8_interpretation_t kind) { return __float2half(ww::fp8_value(v, kind)); }
static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float v, __nv_saturation_t s, __nv_fp8_interpretation_t kind) { return ww::fp8_of(v, s, kind); }
static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double v, __nv_saturation_t s, __nv_fp8_interpretation_t kind) { return ww::fp8_of(v, s, kind); }
static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t kind) { return ww::fp8_of(__half2float(v), s, kind); }
namespace ww {
// A float of 8 bits: made from other numbers to the nearest, the largest finite one where they are beyond it.
template <__nv_fp8_interpretation_t kind> struct Fp8 {
  __nv_fp8_storage_t __x;
  Fp8() = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> explicit Fp8(T v) : __x(fp8_of((double)v, __NV_SATFINITE, kind)) {}
  explicit Fp8(__half v) : __x(fp8_of(__half2float(v), __NV_SATFINITE, kind)) {}
  explicit Fp8(__nv_bfloat16 v) : __x(fp8_of(__bfloat162float(v), __NV_SATFINITE, kind)) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> explicit operator T() const { return (T)fp8_value(__x, kind); }
  explicit operator __half() const { return __float2half(fp8_value(__x, kind)); }
  explicit operator __nv_bfloat16() const { return __float2bfloat16(fp8_value(__x, kind)); }
};
}  // namespace ww
using __nv_fp8_e4m3 = ww::Fp8<__NV_E4M3>;
using __nv_fp8_e5m2 = ww::Fp8<__NV_E5M2>;
