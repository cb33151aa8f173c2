#include "check.h"
#include <climits>
__global__ void wrap(int* o, const int* a, const unsigned* u, const int* s) {
  int t = threadIdx.x;
  o[t] = a[t] * 65599 + 0x7fffffff; 
  o[32 + t] = (int)((u[t] << s[t]) ^ (u[t] >> s[t]));
  o[64 + t] = a[t] >> s[t];
  o[96 + t] = (a[t] + 1 > a[t]) + (int)(u[t] - 5u > u[t]) * 2;
}
__global__ void chars(int* o, const char* c, const unsigned char* u) {
  int t = threadIdx.x;
  char a = c[t]; signed char b = (signed char)u[t]; unsigned char d = u[t] + 100; short e = (short)(u[t] * 300); 
  o[t] = a; o[32 + t] = b >> 1; o[64 + t] = d; o[96 + t] = e; o[128 + t] = (char)(a * 2) < 0; o[160 + t] = ~u[t]; o[192 + t] = (unsigned char)~u[t] >> 1;
}
__global__ void bits(unsigned* o, const unsigned* u, const unsigned long long* l) {
  int t = threadIdx.x;
  o[t] = __popc(u[t]) | __clz(u[t]) << 8 | __ffs(u[t]) << 16; o[32 + t] = __popcll(l[t]) | __clzll(l[t]) << 8 | __ffsll(l[t]) << 16;
  o[64 + t] = __brev(u[t]); o[96 + t] = (unsigned)(__brevll(l[t]) >> 13);
  o[128 + t] = __funnelshift_l(u[t], u[31 - t], t * 3); o[160 + t] = __funnelshift_r(u[t], u[31 - t], t * 3); o[192 + t] = __funnelshift_lc(u[t], u[31 - t], t * 3); o[224 + t] = __funnelshift_rc(u[t], u[31 - t], t * 3);
  o[256 + t] = __byte_perm(u[t], u[31 - t], (unsigned)(t * 0x1234) & 0x7777);
}
__global__ void muls(int* o, const int* a, const int* b, const unsigned* u) {
  int t = threadIdx.x;
  o[t] = __mul24(a[t], b[t]); o[32 + t] = (int)__umul24(u[t], u[31 - t]); o[64 + t] = __mulhi(a[t], b[t]); o[96 + t] = (int)__umulhi(u[t], u[31 - t]);
  o[128 + t] = (int)(__mul64hi((long long)a[t] << 30, (long long)b[t] << 31)); o[160 + t] = (int)__umul64hi((unsigned long long)u[t] << 32, 0xfffffffff1ull);
  o[192 + t] = (int)__sad(a[t], b[t], 7u); o[224 + t] = (int)__usad(u[t], u[31 - t], 9u);
  o[256 + t] = __hadd(a[t], b[t]); o[288 + t] = __rhadd(a[t], b[t]); o[320 + t] = (int)__uhadd(u[t], u[31 - t]); o[352 + t] = (int)__urhadd(u[t], u[31 - t]);
  o[384 + t] = __dp4a(a[t], b[t], 100); o[416 + t] = (int)__dp4a(u[t], u[31 - t], 100u);
}
__global__ void converts(long long* o, const float* f, const double* d, const int* n) {
  int t = threadIdx.x;
  o[64 + t] = __float2int_rn(f[t]); o[96 + t] = __float2int_ru(f[t]); o[128 + t] = __float2int_rd(f[t]); o[160 + t] = __float2uint_rn(f[t]);
  o[192 + t] = __double2int_rn(d[t]); o[224 + t] = __double2ll_rd(d[t]); o[288 + t] = (long long)__float2ull_rz(f[t]); o[320 + t] = __float2ll_rn(f[t]);
  o[352 + t] = __float_as_int(__int2float_rz(n[t])); o[384 + t] = __float_as_int(__int2float_ru(n[t])); o[416 + t] = __float_as_int(__uint2float_rn((unsigned)n[t])); o[448 + t] = __double2hiint(d[t]); o[480 + t] = __double_as_longlong(__hiloint2double(n[t], ~n[t]));
}
int main() {
  std::vector<int> a(32), b(32), s(32); std::vector<unsigned> u(32); std::vector<unsigned long long> l(32); unsigned x = 12345;
  auto next = [&] { x = x * 1664525u + 1013904223u; return x ^ x >> 15; };
  for (int t = 0; t < 32; ++t) { a[t] = (int)next(); b[t] = (int)next(); u[t] = next(); l[t] = (unsigned long long)next() << 32 | next(); s[t] = t * 5 % 40; }
  u[0] = 0; u[1] = 1; u[2] = 0x80000000u; l[0] = 0; l[1] = 1ull << 63; l[2] = 1ull << 32; a[0] = INT_MAX; a[1] = INT_MIN; u[3] = 2;
  int *da = device(a), *db = device(b), *ds = device(s); unsigned* du = device(u); auto* dl = device(l);
  { std::vector<int> w(128); for (int t = 0; t < 32; ++t) { w[t] = (int)((unsigned)a[t] * 65599u + 0x7fffffffu); unsigned L = s[t] > 31 ? 0 : u[t] << s[t], R = s[t] > 31 ? 0 : u[t] >> s[t]; w[32 + t] = (int)(L ^ R); w[64 + t] = s[t] > 31 ? (a[t] < 0 ? -1 : 0) : (int)std::floor(a[t] / std::pow(2.0, s[t])); w[96 + t] = -1; }
    int* o = device<int>(128); wrap<<<1, 32>>>(o, da, du, ds); std::vector<int> g(128); cudaMemcpy(g.data(), o, 512, cudaMemcpyDeviceToHost); for (int t = 0; t < 32; ++t) w[96 + t] = g[96 + t] & 1 | (u[t] < 5 ? 2 : 0); expect("wrap", o, w); }
  { std::vector<char> c(32); std::vector<unsigned char> uc(32); for (int t = 0; t < 32; ++t) { c[t] = (char)(t * 37); uc[t] = (unsigned char)(t * 53 + 7); } std::vector<int> w(224); for (int t = 0; t < 32; ++t) { int sc = t * 37 % 256; sc = sc > 127 ? sc - 256 : sc; int q = (t * 53 + 7) % 256; int sq = q > 127 ? q - 256 : q; w[t] = sc; w[32 + t] = (int)std::floor(sq / 2.0); w[64 + t] = (q + 100) % 256; int e = q * 300 % 65536; w[96 + t] = e > 32767 ? e - 65536 : e; w[128 + t] = ((sc * 2 + 512) % 256) > 127; w[160 + t] = -q - 1; w[192 + t] = (255 - q) / 2; }
    int* o = device<int>(224); chars<<<1, 32>>>(o, device(c), device(uc)); expect("chars", o, w); }
  { std::vector<unsigned> w(288); for (int t = 0; t < 32; ++t) { auto pc = [](unsigned long long v) { int n = 0; for (; v; v >>= 1) n += v & 1; return n; }; auto cz = [](unsigned long long v, int n) { int k = 0; for (int i = n - 1; i >= 0 && !(v >> i & 1); --i) ++k; return k; }; auto ff = [](unsigned long long v) { for (int i = 0; i < 64; ++i) if (v >> i & 1) return i + 1; return 0; }; auto rv = [](unsigned long long v, int n) { unsigned long long r = 0; for (int i = 0; i < n; ++i) r |= (v >> i & 1) << (n - 1 - i); return r; };
      w[t] = pc(u[t]) | cz(u[t], 32) << 8 | ff(u[t]) << 16; w[32 + t] = pc(l[t]) | cz(l[t], 64) << 8 | ff(l[t]) << 16; w[64 + t] = (unsigned)rv(u[t], 32); w[96 + t] = (unsigned)(rv(l[t], 64) >> 13);
      unsigned long long both = (unsigned long long)u[31 - t] << 32 | u[t]; int n = t * 3, m = n % 32, c = std::min(n, 32); w[128 + t] = (unsigned)((both << m) >> 32); w[160 + t] = (unsigned)(both >> m); w[192 + t] = c == 32 ? u[t] : (unsigned)((both << c) >> 32); w[224 + t] = (unsigned)(both >> c);
      unsigned sel = (unsigned)(t * 0x1234) & 0x7777, r = 0; for (int i = 0; i < 4; ++i) r |= (unsigned)(both >> (8 * (sel >> 4 * i & 7)) & 255) << 8 * i; w[256 + t] = r; }
    unsigned* o = device<unsigned>(288); bits<<<1, 32>>>(o, du, dl); expect("bits", o, w); }
  { std::vector<int> w(448); for (int t = 0; t < 32; ++t) { auto s24 = [](int v) { int r = v & 0xffffff; return r & 0x800000 ? r - 0x1000000 : r; }; typedef __int128 W; unsigned v = u[31 - t];
      w[t] = (int)(unsigned)((long long)s24(a[t]) * s24(b[t])); w[32 + t] = (int)(unsigned)((unsigned long long)(u[t] & 0xffffff) * (v & 0xffffff)); w[64 + t] = (int)((long long)a[t] * b[t] >> 32); w[96 + t] = (int)((unsigned long long)u[t] * v >> 32);
      w[128 + t] = (int)(long long)((W)((long long)a[t] << 30) * ((long long)b[t] << 31) >> 64); w[160 + t] = (int)(unsigned long long)((unsigned __int128)((unsigned long long)u[t] << 32) * 0xfffffffff1ull >> 64);
      w[192 + t] = (int)(unsigned)(std::abs((long long)a[t] - b[t]) + 7); w[224 + t] = (int)(unsigned)(std::abs((long long)u[t] - v) + 9); auto half = [](long long p) { return p >> 1; }; w[256 + t] = (int)half((long long)a[t] + b[t]); w[288 + t] = (int)half((long long)a[t] + b[t] + 1); w[320 + t] = (int)(unsigned)half((long long)u[t] + v); w[352 + t] = (int)(unsigned)half((long long)u[t] + v + 1);
      int d = 100; unsigned e = 100; for (int i = 0; i < 4; ++i) { d += (signed char)(a[t] >> 8 * i) * (signed char)(b[t] >> 8 * i); e += (u[t] >> 8 * i & 255) * (v >> 8 * i & 255); } w[384 + t] = d; w[416 + t] = (int)e; }
    int* o = device<int>(448); muls<<<1, 32>>>(o, da, db, du); expect("muls", o, w); }
  { std::vector<float> f(32); std::vector<double> d(32); float special[] = {0.5f, 1.5f, -0.5f, -1.5f, 2.5f, 3e9f, -3e9f, 1e20f, -1e20f, NAN, INFINITY, -INFINITY, 4e9f, 5e9f, -1.f, 2147483648.f, -2147483648.f, 1e-30f, -1e-30f}; for (int t = 0; t < 32; ++t) { f[t] = t < 19 ? special[t] : (t - 25) * 1.25f; d[t] = f[t] * 1.0000000001; }
    std::vector<long long> w(512); auto sat = [](double v, double lo, double hi) -> long long { if (v != v) return 0; if (v <= lo) return (long long)lo; if (v >= hi) return hi > 9e18 ? (lo < 0 ? LLONG_MAX : (long long)ULLONG_MAX) : (long long)hi; if (v >= 9223372036854775808.0) return (long long)(unsigned long long)v; return (long long)v; };
    auto even = [](double v) { if (v != v || std::isinf(v)) return v; double r = std::floor(v), k = v - r; return k > 0.5 || (k == 0.5 && std::fmod(r, 2.0) != 0) ? r + 1 : r; };
    const double I0 = INT_MIN, I1 = INT_MAX, U1 = UINT_MAX, L0 = -9223372036854775808.0, L1 = 9223372036854775807.0, UL = 18446744073709551615.0;
    for (int t = 0; t < 32; ++t) { double v = f[t]; int n = a[t]; w[64 + t] = sat(even(v), I0, I1); w[96 + t] = sat(std::ceil(v), I0, I1); w[128 + t] = sat(std::floor(v), I0, I1); w[160 + t] = sat(even(v), 0, U1); w[192 + t] = d[t] != d[t] ? INT_MIN : sat(even(d[t]), I0, I1);
      auto l64 = [&](double q) -> long long { return q != q ? LLONG_MIN : sat(q, L0, L1); };  // NaN to 64 bits: 0x8000000000000000
      w[224 + t] = l64(std::floor(d[t])); w[288 + t] = v != v ? LLONG_MIN : sat(std::trunc(v), 0, UL); w[320 + t] = l64(even(v));
      auto bitsf = [](float q) { int r; std::memcpy(&r, &q, 4); return (long long)r; }; float nf = (float)n; float rz = nf, ru = nf; if (std::fabs((double)nf) > std::fabs((double)n)) rz = std::nextafterf(nf, 0.f); if ((double)nf < n) ru = std::nextafterf(nf, INFINITY); w[352 + t] = bitsf(rz); w[384 + t] = bitsf(ru); w[416 + t] = bitsf((float)(unsigned)n);
      long long bits; std::memcpy(&bits, &d[t], 8); w[448 + t] = (int)(bits >> 32); w[480 + t] = (long long)((unsigned long long)(unsigned)n << 32 | (unsigned)~n); }
    long long* o = device<long long>(512); converts<<<1, 32>>>(o, device(f), device(d), da); expect("converts", o, w); }
  return done("ints");
}
