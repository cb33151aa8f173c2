#include "check.h"
__global__ void minmax(float* o, const float* a, const float* b) {
  int t = threadIdx.x;
  o[t] = fminf(a[t], b[t]); o[16 + t] = fmaxf(a[t], b[t]); o[32 + t] = __saturatef(a[t]); o[48 + t] = min(a[t], b[t]); o[64 + t] = max(a[t], b[t]); o[80 + t] = (float)fmin((double)a[t], (double)b[t]); o[96 + t] = (float)fmax((double)a[t], (double)b[t]);
  o[112 + t] = a[t] > b[t] ? a[t] : b[t]; o[128 + t] = a[t] < b[t] ? a[t] : b[t]; o[144 + t] = !(a[t] >= b[t]); o[160 + t] = fdimf(a[t], b[t]); o[176 + t] = copysignf(a[t], b[t]);
}
__global__ void mixed(long long* o, int i, unsigned u, long long l, float f, double d) {
  o[0] = min(i, u); o[1] = max(i, u); o[2] = max(l, (long long)i); o[3] = (long long)(max(f, d) * 8); o[4] = (long long)(abs(f) * 8); o[5] = abs(i); o[6] = llabs(l); o[7] = (long long)(fabs(d) * 8); o[8] = i / 2; o[9] = i % 4; o[10] = i >> 1; o[11] = (long long)floor(f); o[12] = u > i; o[13] = sizeof(max(f, 1.f)); o[14] = (long long)(fmaxf(f, i) * 8); o[15] = umin(u, (unsigned)i);
}
__global__ void directed(float* o, const float* a, const float* b) {
  int t = threadIdx.x;
  o[t] = __fadd_rd(a[t], b[t]); o[16 + t] = __fadd_ru(a[t], b[t]); o[32 + t] = __fmul_rz(a[t], b[t]); o[48 + t] = __fmul_ru(a[t], b[t]); o[64 + t] = __fdiv_rd(a[t], b[t]); o[80 + t] = __fsqrt_ru(fabsf(a[t])); o[96 + t] = __frcp_rn(b[t]); o[112 + t] = __fmaf_rn(a[t], b[t], -a[t] * b[t] * 0 + 1e-8f); o[128 + t] = __fsub_rz(a[t], b[t]); o[144 + t] = __fmaf_rd(a[t], b[t], 1e-3f); o[160 + t] = __double2float_rz((double)a[t] * b[t]); o[176 + t] = __double2float_ru((double)a[t] * b[t]);
}
__global__ void rounding(float* o, const float* a) {
  int t = threadIdx.x;
  o[t] = roundf(a[t]); o[16 + t] = rintf(a[t]); o[32 + t] = truncf(a[t]); o[48 + t] = floorf(a[t]); o[64 + t] = (float)lrintf(a[t]); o[80 + t] = (float)lroundf(a[t]); o[96 + t] = fmodf(a[t] * 7, 3.f); o[112 + t] = remainderf(a[t] * 7, 3.f); o[128 + t] = ceilf(a[t]); o[144 + t] = nearbyintf(a[t]);
}
__global__ void special(float* o) {
  const float inf = __int_as_float(0x7f800000), nan = __int_as_float(0x7fffffff);
  const float pair[2] = {3.f, 4.f}; int i = 0; float x[] = {rsqrtf(0.f), rsqrtf(-1.f), sqrtf(-0.f), 1.f / -0.f, logf(0.f), logf(-1.f), expf(-inf), expf(1000.f), powf(0.f, 0.f), powf(-2.f, 3.f), powf(-2.f, 0.5f), powf(nan, 0.f), powf(1.f, nan), atan2f(0.f, -1.f), atan2f(-0.f, -1.f), fmodf(5.f, inf), fmodf(inf, 2.f), hypotf(inf, nan), cbrtf(-27.f), ldexpf(1.f, -149), (float)ilogbf(8.f), logbf(0.f), fmaf(inf, 0.f, 1.f), tanhf(100.f), sinpif(1e9f), cospif(0.5f), erff(10.f), nextafterf(0.f, 1.f), scalbnf(3.f, 4), exp2f(-149.f), log2f(8.f), exp10f(2.f), rcbrtf(8.f), rhypotf(3.f, 4.f), norm3df(2.f, 3.f, 6.f), norm4df(1.f, 1.f, 1.f, 1.f), __fdividef(6.f, 3.f), trunc(-0.5f), (float)signbit(-0.f), (float)(isnan(nan) != 0), (float)(isinf(-inf) != 0), (float)(isfinite(1e38f) != 0)};
  for (float v : x) o[i++] = v;
}
__global__ void denormal(float* o, float a, double d) { o[0] = a * 0.5f; o[1] = a + a; o[2] = (float)d; o[3] = 1e-40f > 0; o[4] = a / 3; }
__global__ void frexps(float* o, const float* a) { int t = threadIdx.x, e; float m = frexpf(a[t], &e); float ip, fr = modff(a[t], &ip); int q; float r = remquof(a[t], 0.75f, &q); o[t] = m; o[16 + t] = e; o[32 + t] = ip; o[48 + t] = fr; o[64 + t] = r; o[80 + t] = q & 7; float s, c; sincosf(a[t], &s, &c); o[96 + t] = fabsf(s - sinf(a[t])) < 1e-6f && fabsf(c - cosf(a[t])) < 1e-6f; }
int main() {
  float N = NAN, I = INFINITY; std::vector<float> a{N, 1, N, -0.f, 0.f, I, -I, 2, -3, 0.25f, 1.5f, -0.5f, 1e-40f, 3, N, -1}, b{1, N, N, 0.f, -0.f, 1, 1, 2, -4, 7, N, I, 0, -I, I, -1};
  { std::vector<float> w(192); auto mn = [](float x, float y) { return x != x ? y : y != y ? x : x < y ? x : y < x ? y : std::signbit(x) ? x : y; }; auto mx = [](float x, float y) { return x != x ? y : y != y ? x : x > y ? x : y > x ? y : std::signbit(x) ? y : x; };
    for (int t = 0; t < 16; ++t) { float x = a[t], y = b[t]; w[t] = w[48 + t] = w[80 + t] = mn(x, y); w[16 + t] = w[64 + t] = w[96 + t] = mx(x, y); w[32 + t] = x != x ? 0.f : x <= 0 ? 0.f : x >= 1 ? 1.f : x; w[112 + t] = x > y ? x : y; w[128 + t] = x < y ? x : y; w[144 + t] = (x != x || y != y || x < y) ? 1.f : 0.f; w[160 + t] = (x != x || y != y) ? N : x > y ? x - y : 0.f; w[176 + t] = std::signbit(y) ? -std::fabs(x) : std::fabs(x); }
    float* o = device<float>(192); minmax<<<1, 16>>>(o, device(a), device(b)); std::vector<float> g(192); cudaDeviceSynchronize(); cudaMemcpy(g.data(), o, 768, cudaMemcpyDeviceToHost); for (int i = 0; i < 112; ++i) if (g[i] == 0 && w[i] == 0) w[i] = g[i]; expect("minmax", o, w); }  // of zeros of both signs, either
  { long long* o = device<long long>(16); mixed<<<1, 1>>>(o, -5, 7u, -4000000000ll, -2.5f, 1.25); expect("mixed", o, std::vector<long long>{7, 4294967291ll, -5, 10, 20, 5, 4000000000ll, 10, -2, -1, -3, -3, 0, 4, -20, 7}); }
  { std::vector<float> p{1, 3, -1, 0.1f, 1e10f, -7, 1e-5f, 5.5f, 123.456f, -0.3f, 1.0000001f, 2, 16777216.f, -16777216.f, 0.7f, 9}, q{1e-10f, 7, 3, 0.2f, 1, 0.3f, 1e9f, -1e-9f, 0.001f, -0.7f, 1.0000001f, 3, 1, -1, 0.1f, 1e-30f}; std::vector<float> w(192);
    auto down = [](__float128 v) { float f = (float)v; return (__float128)f > v ? std::nextafterf(f, -INFINITY) : f; }; auto up = [](__float128 v) { float f = (float)v; return (__float128)f < v ? std::nextafterf(f, INFINITY) : f; }; auto zero = [&](__float128 v) { return v < 0 ? up(v) : down(v); };
    for (int t = 0; t < 16; ++t) { __float128 x = p[t], y = q[t]; w[t] = down(x + y); w[16 + t] = up(x + y); w[32 + t] = zero(x * y); w[48 + t] = up(x * y); w[64 + t] = down(x / y); double s = std::sqrt((long double)std::fabs(p[t])); (void)s; float sf = std::sqrt(std::fabs(p[t])); w[80 + t] = (__float128)sf * sf < (x < 0 ? -x : x) ? std::nextafterf(sf, INFINITY) : sf; w[96 + t] = (float)(1 / y); w[112 + t] = (float)(x * y + (__float128)1e-8f); w[128 + t] = zero(x - y); w[144 + t] = down(x * y + (__float128)1e-3f); w[160 + t] = zero(x * y); w[176 + t] = up(x * y); }
    float* o = device<float>(192); directed<<<1, 16>>>(o, device(p), device(q)); expect("directed", o, w); }
  { std::vector<float> p{0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49999997f, 8388607.5f, -0.2f, 3, 1e10f, -7.75f, 0.f, -0.f, 100.5f, -100.5f}, w(160); auto even = [](float v) { if (std::fabs(v) >= 8388608.f) return v; double r = std::floor((double)v), k = v - r; double z = k > 0.5 || (k == 0.5 && std::fmod(r, 2) != 0) ? r + 1 : r; return (float)std::copysign(z, v); };
    for (int t = 0; t < 16; ++t) { double v = p[t]; double m = std::fabs(v), fl = std::floor(m); double away = m - fl >= 0.5 ? fl + 1 : fl; w[t] = (float)std::copysign(away, v); w[16 + t] = w[144 + t] = even(p[t]); w[32 + t] = (float)std::copysign(fl, v); w[48 + t] = (float)std::floor(v); w[64 + t] = even(p[t]) + 0.f; w[80 + t] = (float)std::copysign(away, v) + 0.f; float s = p[t] * 7; w[96 + t] = (float)std::copysign(std::fabs((double)s) - 3 * std::floor(std::fabs((double)s) / 3), s); double rem = (double)s / 3; double z = std::floor(rem), k = rem - z; double n = k > 0.5 || (k == 0.5 && std::fmod(z, 2) != 0) ? z + 1 : z; double rr = (double)s - 3 * n; w[112 + t] = (float)(rr == 0 ? std::copysign(0.0, s) : rr); w[128 + t] = (float)std::ceil(v); }
    for (int t : {10}) w[64 + t] = w[80 + t] = 1e10f;  // long has 64 bits
    float* o = device<float>(160); rounding<<<1, 16>>>(o, device(p)); expect("rounding", o, w); }
  { std::vector<float> w{I, N, -0.f, -I, -I, N, 0, I, 1, -8, N, 1, 1, 3.14159274f, -3.14159274f, 5, N, I, -3, 1.4e-45f, 3, -I, N, 1, 0, 0, 1, 1.4e-45f, 48, 1.4e-45f, 3, 100, 0.5f, 0.2f, 7, 2, 2, -0.f, 1, 1, 1, 1}; float* o = device<float>(w.size()); special<<<1, 1>>>(o); expect("special", o, w); }
  { float* o = device<float>(5); denormal<<<1, 1>>>(o, 1e-38f, 1e-42); float h = 1e-38f * 0.5f; expect("denormal", o, std::vector<float>{h, 1e-38f + 1e-38f, 1e-42f, 1, 1e-38f / 3}); }
  { std::vector<float> p{0.f, 1, -3.75f, 100.5f, 1e-40f, -0.f, 8, 0.1f, -0.6f, 2.25f, 7.5f, -1.125f, 3, 5, 6, 9.75f}, w(112); for (int t = 0; t < 16; ++t) { int e = 0; double m = std::fabs((double)p[t]); if (m != 0) { while (m >= 1) m /= 2, ++e; while (m < 0.5) m *= 2, --e; } w[t] = (float)std::copysign(m, p[t]); w[16 + t] = e; w[32 + t] = std::trunc(p[t]); w[48 + t] = (float)std::copysign(std::fabs((double)p[t]) - std::floor(std::fabs((double)p[t])), p[t]); double r = (double)p[t] / 0.75, z = std::floor(r), k = r - z, n = k > 0.5 || (k == 0.5 && std::fmod(z, 2) != 0) ? z + 1 : z; double rr = (double)p[t] - n * 0.75; w[64 + t] = (float)(rr == 0 ? std::copysign(0.0, p[t]) : rr); w[80 + t] = (float)((int)n & 7); w[96 + t] = 1; } 
    // the sign of the quotient's low bits is that of the quotient
    for (int t = 0; t < 16; ++t) { double n = w[80 + t]; (void)n; } float* o = device<float>(112); frexps<<<1, 16>>>(o, device(p)); expect("frexps", o, w); }
  return done("floats");
}
