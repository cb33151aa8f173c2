#include "check.h"
#include <cuda_fp16.h>
#include <cuda_bf16.h>
static unsigned short round16(double v, int mant, int emin, int emax, int mode = 0) {  // to nearest even (0), to zero (1), down (2), up (3): exact, from double
  if (v != v) return mant == 10 ? 0x7fff : 0x7fff;
  unsigned short sign = std::signbit(v) ? 0x8000 : 0; double m = std::fabs(v); int bias = emin == -14 ? 15 : 127; unsigned short inf = (unsigned short)((2 * bias + 1) << mant);
  if (std::isinf(v)) return sign | inf;
  if (m == 0) return sign;
  int e; std::frexp(m, &e); --e; if (e < emin) e = emin; double unit = std::ldexp(1.0, e - mant), q = m / unit, f = std::floor(q), k = q - f;
  bool up = mode == 0 ? k > 0.5 || (k == 0.5 && std::fmod(f, 2) != 0) : mode == 1 ? false : mode == 2 ? k > 0 && sign : k > 0 && !sign;
  double r = (up ? f + 1 : f) * unit; if (r == 0) return sign; double top = std::ldexp(2 - std::ldexp(1.0, -mant), emax);
  if (r > top) { bool toinf = mode == 0 || (mode == 2 && sign) || (mode == 3 && !sign); return sign | (toinf ? inf : inf - 1); }
  int e2; std::frexp(r, &e2); --e2; if (e2 < emin) return sign | (unsigned short)(r / std::ldexp(1.0, emin - mant));
  return sign | (unsigned short)((e2 + bias) << mant) | ((unsigned short)(r / std::ldexp(1.0, e2 - mant)) & ((1 << mant) - 1));
}
static unsigned short h16(double v, int mode = 0) { return round16(v, 10, -14, 15, mode); }
static unsigned short b16(double v, int mode = 0) { return round16(v, 7, -126, 127, mode); }
static double fromh(unsigned short h) { int e = h >> 10 & 31, m = h & 1023; double v = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24); return h & 0x8000 ? -v : v; }
__global__ void rounds(unsigned short* o, const double* d, const float* f) {
  int t = threadIdx.x;
  o[t] = __half_as_ushort(__double2half(d[t])); o[32 + t] = __half_as_ushort(__half(d[t])); o[64 + t] = __half_as_ushort(__float2half(f[t])); o[96 + t] = __half_as_ushort(__float2half_rz(f[t])); o[128 + t] = __half_as_ushort(__float2half_ru(f[t])); o[160 + t] = __half_as_ushort(__float2half_rd(f[t]));
  o[192 + t] = __bfloat16_as_ushort(__double2bfloat16(d[t])); o[224 + t] = __bfloat16_as_ushort(__nv_bfloat16(d[t])); o[256 + t] = __bfloat16_as_ushort(__float2bfloat16(f[t])); o[288 + t] = __bfloat16_as_ushort(__float2bfloat16_rz(f[t]));
  half h; h = d[t]; o[320 + t] = __half_as_ushort(h); half g = static_cast<half>(d[t]); o[352 + t] = __half_as_ushort(g);
  __nv_bfloat16 b = d[t]; o[384 + t] = __bfloat16_as_ushort(b);
}
__global__ void wholes(unsigned short* o, const int* n, const long long* l) {
  int t = threadIdx.x;
  o[t] = __half_as_ushort(__int2half_rn(n[t])); o[16 + t] = __half_as_ushort(half(n[t])); o[32 + t] = __half_as_ushort(__ll2half_rn(l[t])); o[48 + t] = __bfloat16_as_ushort(__nv_bfloat16(n[t])); o[64 + t] = __bfloat16_as_ushort(__int2bfloat16_rn(n[t])); o[80 + t] = __half_as_ushort(__uint2half_rz((unsigned)n[t])); o[96 + t] = __half_as_ushort((half)(unsigned long long)l[t]);
}
__global__ void pairs(unsigned short* o, const unsigned short* a, const unsigned short* b, const unsigned short* c) {
  int t = threadIdx.x; half2 x = __halves2half2(__ushort_as_half(a[t]), __ushort_as_half(b[t])), y = __halves2half2(__ushort_as_half(b[t]), __ushort_as_half(c[t])), z = __half2half2(__ushort_as_half(c[t]));
  half2 r[] = {__hadd2(x, y), __hmul2(x, y), __hfma2(x, y, z), __hsub2(x, y), __hmax2(x, y), __hmin2(x, y), __hneg2(x), __habs2(y), h2sqrt(__habs2(x)), x * y + z, __lowhigh2highlow(x), __lows2half2(x, y), __highs2half2(x, y), __hadd2_sat(x, y), __low2half2(x), __high2half2(x)};
  for (int i = 0; i < 16; ++i) { o[(2 * i) * 32 + t] = __half_as_ushort(__low2half(r[i])); o[(2 * i + 1) * 32 + t] = __half_as_ushort(__high2half(r[i])); }
}
__global__ void compare(int* o, const unsigned short* a, const unsigned short* b) {
  int t = threadIdx.x; half x = __ushort_as_half(a[t]), y = __ushort_as_half(b[t]);
  o[t] = __hlt(x, y) | __hle(x, y) << 1 | __heq(x, y) << 2 | __hne(x, y) << 3 | __hgt(x, y) << 4 | __hge(x, y) << 5 | __hltu(x, y) << 6 | __hequ(x, y) << 7 | __hneu(x, y) << 8 | __hgtu(x, y) << 9 | (x < y) << 10 | (x != y) << 11 | __hisnan(x) << 12 | (__hisinf(y) != 0) << 13 | (x == y) << 14;
  o[32 + t] = __half2int_rn(x); o[64 + t] = __half2int_rz(x); o[96 + t] = __half2int_ru(x); o[128 + t] = __half2short_rn(x); o[160 + t] = __half2uint_rz(x); o[224 + t] = (int)__half2float(hrint(x)); o[256 + t] = (bool)x;
}
int main() {
  std::vector<double> d(32); double S[] = {1.0 + 1.0 / 2048 + 1e-12, 1.0 + 1.0 / 2048 - 1e-12, 1.0 + 1.0 / 2048, 1.0 + 3.0 / 2048, 65519.99999999, 65520.0, 65504, 1e-8, 2.98023223876953125e-8, 2.98023223876953126e-8, 5.9604644775390625e-8 * 1.5, 5.9604644775390625e-8 * 1.5000000001, 1.0 + 1.0 / 256 + 1e-12, 1.0 + 1.0 / 256, 1.0 + 1.0 / 256 - 1e-12, 1.0 + 3.0 / 256 - 1e-13, -1.0 - 1.0 / 2048 - 1e-12, INFINITY, -INFINITY, -0.0, 1e300, -1e300, 1e-300, 3.3895313892515355e38, 3.3961775292304957e38, 0.1, 1.0 / 3, 6.1035e-5, 6.097555160522461e-05, 1e-5, 2049.0, 2051.0};
  for (int t = 0; t < 32; ++t) d[t] = S[t]; std::vector<float> f(32); for (int t = 0; t < 32; ++t) f[t] = (float)d[t];
  { std::vector<unsigned short> w(416); for (int t = 0; t < 32; ++t) { w[t] = w[32 + t] = w[320 + t] = w[352 + t] = h16(d[t]); w[64 + t] = h16(f[t]); w[96 + t] = h16(f[t], 1); w[128 + t] = h16(f[t], 3); w[160 + t] = h16(f[t], 2); w[192 + t] = w[224 + t] = w[384 + t] = b16(d[t]); w[256 + t] = b16(f[t]); w[288 + t] = b16(f[t], 1); } auto* o = device<unsigned short>(416); rounds<<<1, 32>>>(o, device(d), device(f)); expect("rounds", o, w); }
  { std::vector<int> n{2049, 2051, 65519, 65520, -2049, 16777217, 33685505, 100000, -65520, 257, 8421377, 2147483647, 4097, 4099, 0, -1}; std::vector<long long> l; for (int v : n) l.push_back(v < 0 ? (long long)v : v); l[11] = 9007199254740993ll; std::vector<unsigned short> w(112); for (int t = 0; t < 16; ++t) { w[t] = w[16 + t] = h16(n[t]); w[32 + t] = h16((double)l[t]); w[48 + t] = w[64 + t] = b16(n[t]); w[80 + t] = h16((double)(unsigned)n[t], 1); w[96 + t] = h16((double)(unsigned long long)l[t]); } auto* o = device<unsigned short>(112); wholes<<<1, 16>>>(o, device(n), device(l)); expect("wholes", o, w); }
  std::vector<unsigned short> a(32), b(32), c(32); unsigned x = 7; for (int t = 0; t < 32; ++t) { x = x * 1664525u + 1013904223u; a[t] = h16((int)(x >> 8 & 0xffff) / 4096.0 - 8); x = x * 1664525u + 1013904223u; b[t] = h16((int)(x >> 8 & 0xffff) / 8192.0 - 4); x = x * 1664525u + 1013904223u; c[t] = h16((int)(x >> 8 & 0xffff) / 65536.0); }
  a[0] = 0x7e00; b[1] = 0x7e00; a[2] = 0x7c00; a[3] = 0x8000; b[3] = 0; a[4] = 0; b[4] = 0x8000; a[5] = h16(2.5); a[6] = h16(3.5); a[7] = h16(-2.5); a[8] = h16(65504); b[8] = h16(65504); a[9] = 1; b[9] = h16(0.5); a[10] = b[10]; a[11] = h16(40000.0); a[12] = 0xfc00;
  { std::vector<unsigned short> w(1024); auto mx = [](unsigned short p, unsigned short q) { double x = fromh(p), y = fromh(q); if (x != x && y != y) return (unsigned short)0x7fff; if (x != x) return q; if (y != y) return p; return x > y ? p : y > x ? q : p == 0x8000 ? q : p; }; auto mn = [](unsigned short p, unsigned short q) { double x = fromh(p), y = fromh(q); if (x != x && y != y) return (unsigned short)0x7fff; if (x != x) return q; if (y != y) return p; return x < y ? p : y < x ? q : p == 0x8000 ? p : q; };
    for (int t = 0; t < 32; ++t) for (int hi = 0; hi < 2; ++hi) { unsigned short ux = hi ? b[t] : a[t], uy = hi ? c[t] : b[t], uz = c[t]; double X = fromh(ux), Y = fromh(uy), Z = fromh(uz); auto put = [&](int i, unsigned short v) { w[(2 * i + hi) * 32 + t] = v; }; double s = X + Y;
      put(0, h16(X + Y)); put(1, h16(X * Y)); put(2, h16(X * Y + Z)); put(3, h16(X - Y)); put(4, mx(ux, uy)); put(5, mn(ux, uy)); put(6, ux ^ 0x8000); put(7, uy & 0x7fff); put(8, h16(std::sqrt(std::fabs(X)))); put(9, h16(fromh(h16(X * Y)) + Z)); put(10, hi ? a[t] : b[t]); put(11, hi ? b[t] : a[t]); put(12, hi ? c[t] : b[t]); put(13, s != s ? 0 : s <= 0 ? 0 : s >= 1 ? h16(1) : h16(s)); put(14, a[t]); put(15, b[t]); }
    auto* o = device<unsigned short>(1024); pairs<<<1, 32>>>(o, device(a), device(b), device(c));
    std::vector<unsigned short> g(1024); cudaDeviceSynchronize(); cudaMemcpy(g.data(), o, 2048, cudaMemcpyDeviceToHost); for (int i = 0; i < 1024; ++i) if (fromh(g[i]) != fromh(g[i]) && fromh(w[i]) != fromh(w[i])) w[i] = g[i];  // any NaN
    for (int i = 9 * 64; i < 10 * 64; ++i) { int t = i % 32, hi = i / 32 % 2; double X = fromh(hi ? b[t] : a[t]), Y = fromh(hi ? c[t] : b[t]), Z = fromh(c[t]); if (g[i] == h16(X * Y + Z)) w[i] = g[i]; }  // nvcc may contract it
    for (int i = 8 * 32; i < 12 * 32; ++i) if ((g[i] | w[i]) == 0x8000) w[i] = g[i];  // of zeros of both signs, either
    expect("pairs", o, w); }
  { std::vector<int> w(288); for (int t = 0; t < 32; ++t) { double X = fromh(a[t]), Y = fromh(b[t]); bool u = X != X || Y != Y; w[t] = (X < Y) | (X <= Y) << 1 | (X == Y) << 2 | (!u && X != Y) << 3 | (X > Y) << 4 | (X >= Y) << 5 | (u || X < Y) << 6 | (u || X == Y) << 7 | (u || X != Y) << 8 | (u || X > Y) << 9 | (X < Y) << 10 | (u || X != Y) << 11 | (X != X) << 12 | std::isinf(Y) << 13 | (X == Y) << 14;
      auto sat = [](double v, double lo, double hi) { return v != v ? 0. : v < lo ? lo : v > hi ? hi : v; }; auto even = [](double v) { if (std::isinf(v) || v != v) return v; double r = std::floor(v), k = v - r; return k > 0.5 || (k == 0.5 && std::fmod(r, 2) != 0) ? r + 1 : r; }; w[32 + t] = (int)sat(even(X), -2147483648.0, 2147483647.0); w[64 + t] = (int)sat(std::trunc(X), -2147483648.0, 2147483647.0); w[96 + t] = (int)sat(std::ceil(X), -2147483648.0, 2147483647.0); w[128 + t] = (int)sat(even(X), -32768, 32767); w[160 + t] = (int)(unsigned)sat(std::trunc(X), 0, 4294967295.0); w[224 + t] = std::isinf(X) || X != X ? 0 : (int)even(X); w[256 + t] = (a[t] & 0x7fff) != 0; }
    int* o = device<int>(288); compare<<<1, 32>>>(o, device(a), device(b)); std::vector<int> g(288); cudaDeviceSynchronize(); cudaMemcpy(g.data(), o, 288 * 4, cudaMemcpyDeviceToHost); for (int t = 0; t < 32; ++t) if (std::isinf(fromh(a[t])) || fromh(a[t]) != fromh(a[t])) w[224 + t] = g[224 + t]; expect("compare", o, w); }
  return done("half");
}
