// CUDA's types and device functions in plain C++, shared by all tiers.
#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <climits>
#include <cfloat>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <omp.h>

#if defined(__GLIBC__) && defined(__GNUC__)
extern "C" float sqrtf(float) noexcept __attribute__((const));  // sets no errno: gcc reads its pragma for that too late to vectorise square roots
extern "C" double sqrt(double) noexcept __attribute__((const));
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#ifdef __ELF__  // a static variable by a name for other sources, which the host's own of that name replaces
#define WW_NAMED(VARIABLE, NAME, STATIC) extern decltype(VARIABLE) ww_named_##VARIABLE __asm__(NAME) __attribute__((weak, alias(STATIC)));
#else
#define WW_NAMED(VARIABLE, NAME, STATIC)
#endif
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ __attribute__((aligned(64))) static thread_local  // g++ 12 vectorises as if such arrays of a file were aligned, and does not align them
#define CUDART_INF_F INFINITY
#define CUDART_INF ((double)INFINITY)
#define CUDART_NAN_F NAN
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931
#define CUDART_MAX_NORMAL_F FLT_MAX
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_SQRT_TWO_F 1.41421356f
#define CUDART_THIRD_F 0.333333333f
#define CUDART_PIO4_F 0.785398163f
#define CUDART_PIO2_F 1.57079633f
#define CUDART_3PIO4_F 2.35619449f
#define CUDART_2_OVER_PI_F 0.636619772f
#define CUDART_SQRT_2_OVER_PI_F 0.797884561f
#define CUDART_L2E_F 1.44269504f
#define CUDART_L2T_F 3.32192809f
#define CUDART_LG2_F 0.301029996f
#define CUDART_LGE_F 0.434294482f
#define CUDART_LN2_F 0.693147181f
#define CUDART_LNT_F 2.30258509f
#define CUDART_LNPI_F 1.14472989f
#define CUDART_ZERO_F 0.0f
#define CUDART_NEG_ZERO_F -0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_SQRT_HALF 0.70710678118654757
#define CUDART_SQRT_TWO 1.4142135623730951
#define CUDART_THIRD 0.33333333333333331
#define CUDART_PIO4 0.78539816339744828
#define CUDART_PIO2 1.5707963267948966
#define CUDART_3PIO4 2.3561944901923448
#define CUDART_2_OVER_PI 0.63661977236758138
#define CUDART_SQRT_2_OVER_PI 0.79788456080286541
#define CUDART_SQRT_PI 1.7724538509055159
#define CUDART_L2E 1.4426950408889634
#define CUDART_L2T 3.3219280948873622
#define CUDART_LG2 0.3010299956639812
#define CUDART_LGE 0.43429448190325182
#define CUDART_LN2 0.69314718055994529
#define CUDART_LNT 2.3025850929940459
#define CUDART_LNPI 1.1447298858494002
#define CUDART_ZERO 0.0
#define CUDART_NEG_ZERO -0.0
#define CUDART_ONE 1.0
#define CUDART_NAN ((double)NAN)
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_MIN_DENORM 4.9406564584124654e-324

using std::abs, std::signbit, std::isnan, std::isinf, std::isfinite;  // global in CUDA, also where a program does not include math.h
typedef unsigned char uchar;
using uint = unsigned int;
using ushort = unsigned short;
using ulong = unsigned long;

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  operator uint3() const { return {x, y, z}; }
};

#define WW_VECTOR_TYPES(T, N, A1, A2, A4) \
  struct N##1 { T x; }; \
  struct alignas(A2) N##2 { T x, y; }; \
  struct N##3 { T x, y, z; }; \
  struct alignas(A4) N##4 { T x, y, z, w; }; \
  static inline N##1 make_##N##1(T x) { return {x}; } \
  static inline N##2 make_##N##2(T x, T y) { return {x, y}; } \
  static inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define WW_VECTOR_TYPES_BUT_3(T, N, A2, A4) \
  struct N##1 { T x; }; \
  struct alignas(A2) N##2 { T x, y; }; \
  struct alignas(A4) N##4 { T x, y, z, w; }; \
  static inline N##1 make_##N##1(T x) { return {x}; } \
  static inline N##2 make_##N##2(T x, T y) { return {x, y}; } \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
WW_VECTOR_TYPES(float, float, 4, 8, 16)
WW_VECTOR_TYPES(double, double, 8, 16, 16)
WW_VECTOR_TYPES(int, int, 4, 8, 16)
WW_VECTOR_TYPES(short, short, 2, 4, 8)
WW_VECTOR_TYPES(signed char, char, 1, 2, 4)
WW_VECTOR_TYPES(unsigned char, uchar, 1, 2, 4)
WW_VECTOR_TYPES(unsigned short, ushort, 2, 4, 8)
WW_VECTOR_TYPES(long, long, 8, 16, 16)
WW_VECTOR_TYPES(unsigned long, ulong, 8, 16, 16)
WW_VECTOR_TYPES(long long, longlong, 8, 16, 16)
WW_VECTOR_TYPES(unsigned long long, ulonglong, 8, 16, 16)
WW_VECTOR_TYPES_BUT_3(unsigned, uint, 8, 16)
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// min and max for every mix of arithmetic types; of a NaN and a number, the number. The first choice is one instruction, and the second a blend.
template <class A, class B, class C = std::common_type_t<A, B>, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr C max(A a, B b) { const C x = a, y = b, r = x > y ? x : y; return y != y ? x : r; }
template <class A, class B, class C = std::common_type_t<A, B>, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr C min(A a, B b) { const C x = a, y = b, r = x < y ? x : y; return y != y ? x : r; }
static inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }

namespace ww {
template <class To, class From> static inline To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "bits() keeps the size");
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}
template <class T> static inline T largest(std::initializer_list<T> values) { T r = *values.begin(); for (T v : values) r = v > r ? v : r; return r; }
template <class T> static inline T smallest(std::initializer_list<T> values) { T r = *values.begin(); for (T v : values) r = v < r ? v : r; return r; }
static inline long up(long a, long b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }  // a / b rounded up, for b > 0
// What `T x;` does, to an x that is there.
template <class T> static inline void made_again(T& x) { if constexpr (!std::is_trivially_default_constructible_v<T>) x = T(); }
template <class T, size_t N> static inline void made_again(T (&x)[N]) { for (T& one : x) made_again(one); }
// c ? a : b, which gcc turns into no branch.
template <class T> static inline __attribute__((always_inline)) T chosen(bool c, T a, T b) {
  if constexpr (std::is_arithmetic_v<T> && sizeof(T) == 4) {
    const uint32_t mask = -(uint32_t)c;
    return bits<T>((bits<uint32_t>(a) & mask) | (bits<uint32_t>(b) & ~mask));
  } else {
    return c ? a : b;
  }
}
// Threads until `sum`, which grows by `step` a thread, is at the next multiple of `size`.
template <int size, int step, class T> static inline int to_next(T sum) { const T rest = sum % size; return (size + step - 1 - (int)(rest < 0 ? rest + size : rest)) / step; }
// The same for a sum from 0 on that grows by 1, and a size that only the run shows.
template <class T> static inline int to_next_of(T sum, long size) { const long left = size - (long)sum % size; return left < 1 << 30 ? (int)left : 1 << 30; }
// Runs what pairs of threads do that are 1, 2 or 4 apart, with the distance as a constant.
static inline bool is_close(long distance) { return distance == 1 || distance == 2 || distance == 4; }
template <class F> static inline void at_distance(long distance, F run) {
  if (distance == 1) run(std::integral_constant<int, 1>());
  else if (distance == 2) run(std::integral_constant<int, 2>());
  else run(std::integral_constant<int, 4>());
}
static inline bool is_bit(long size, long least) { return size >= least && (size & (size - 1)) == 0; }
template <class T> static inline int to_next_bit(T sum, long size) { const long left = size - ((long)sum & (size - 1)); return left < 1 << 30 ? (int)left : 1 << 30; }
// How many rows of threads are taken together from one on: `most` where so many follow and all take part, else one.
template <int most, class F> static inline int rows_from(int first, int end, F takes_part) {
  if (first + most > end) return 1;
  for (int row = first; row < first + most; ++row) if (!takes_part(row)) return 1;
  return most;
}
// Where a row of threads starts in an array: an unsigned number from 2^32 - 65536 on stands for a negative one, as `i - 1u` is for i = 0.
static inline long start(unsigned at) { return at >= 0xffff0000u ? (long)(int)at : (long)at; }
template <class T> static inline long start(T at) { return (long)at; }
// The first thread from `low` on for which base + thread is a multiple of `size`; and the first that is too far for thread * factor < end, where that is
// seen: factors that are not positive, or so large that products of them begin again at zero, bound nothing.
static inline int multiple(long low, long base, long size) { return size > 0 ? (int)(low + (size - (base + low) % size) % size) : (int)low; }
static inline long bounded(long end, long factor) { return factor > 0 && factor < 1 << 20 ? (end + factor - 1) / factor : 1 << 30; }
// Shifts in device code are written `x << ww::by(n)`. PTX clamps the amount, which it reads as unsigned: from the width of x on nothing is left, or the
// sign. By masks, since gcc threads the jumps of `n < 32 ? x << n : 0` through a loop's rounds, which then stays scalar (a hash: 5 times as slow).
template <class N> struct Amount { N value; constexpr operator N() const { return value; } };
template <class N, class = std::enable_if_t<std::is_integral_v<N> || std::is_enum_v<N>>> constexpr Amount<N> by(N n) { return {n}; }
template <class N, class = std::enable_if_t<!std::is_integral_v<N> && !std::is_enum_v<N>>> constexpr const N& by(const N& n) { return n; }
template <class T> using shifted = std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>, std::remove_cv_t<decltype(+T())>>;
template <class T, class N, class R = shifted<T>> __attribute__((always_inline)) constexpr R operator<<(T x, Amount<N> amount) {
  using Bits = std::make_unsigned_t<R>;
  const Bits n = (unsigned)amount.value, last = 8 * sizeof(R) - 1;
  return (R)(((Bits)x << (n & last)) & -(Bits)(n <= last));
}
template <class T, class N, class R = shifted<T>> __attribute__((always_inline)) constexpr R operator>>(T x, Amount<N> amount) {
  using Bits = std::make_unsigned_t<R>;
  const Bits n = (unsigned)amount.value, last = 8 * sizeof(R) - 1;
  if constexpr (std::is_signed_v<R>) return (R)x >> (n < last ? n : last);
  return ((R)x >> (n & last)) & -(Bits)(n <= last);
}
template <class T, class N, class R = shifted<T>> __attribute__((always_inline)) constexpr T& operator<<=(T& x, Amount<N> n) { return x = (T)(x << n); }
template <class T, class N, class R = shifted<T>> __attribute__((always_inline)) constexpr T& operator>>=(T& x, Amount<N> n) { return x = (T)(x >> n); }
template <class T> struct identity { using type = T; };
template <class T> using type_identity_t = typename identity<T>::type;

// Largest and smallest without the library call; of a NaN and a number, the number, as fmaxf and fminf have it.
static inline float fmax_f(float a, float b) { const float r = a > b ? a : b; return b != b ? a : r; }
static inline float fmin_f(float a, float b) { const float r = a < b ? a : b; return b != b ? a : r; }
static inline double fmax_d(double a, double b) { const double r = a > b ? a : b; return b != b ? a : r; }
static inline double fmin_d(double a, double b) { const double r = a < b ? a : b; return b != b ? a : r; }
}  // namespace ww
#pragma omp declare reduction(ww_max : float : omp_out = ww::fmax_f(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(ww_min : float : omp_out = ww::fmin_f(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(ww_max : double : omp_out = ww::fmax_d(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(ww_min : double : omp_out = ww::fmin_d(omp_out, omp_in)) initializer(omp_priv = omp_orig)

// Loads and stores with cache hints: the hint has no meaning here.
template <class T> static inline T __ldg(const T* p) { return *p; }
template <class T> static inline T __ldcs(const T* p) { return *p; }
template <class T> static inline T __ldca(const T* p) { return *p; }
template <class T> static inline T __ldcg(const T* p) { return *p; }
template <class T> static inline T __ldlu(const T* p) { return *p; }
template <class T> static inline T __ldcv(const T* p) { return *(const volatile T*)p; }
template <class T> static inline void __stcs(T* p, ww::type_identity_t<T> v) { *p = v; }
template <class T> static inline void __stcg(T* p, ww::type_identity_t<T> v) { *p = v; }
template <class T> static inline void __stwb(T* p, ww::type_identity_t<T> v) { *p = v; }
template <class T> static inline void __stwt(T* p, ww::type_identity_t<T> v) { *p = v; }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() {}
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __nanosleep(unsigned) {}
[[noreturn]] static inline void __trap() { std::fprintf(stderr, "__trap()\n"); std::abort(); }
static inline void __brkpt() {}
static inline long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
static inline clock_t ww_clock() { return (clock_t)clock64(); }
template <class = void> static inline unsigned long long __globaltimer() { return (unsigned long long)clock64(); }
static inline void __prof_trigger(int) {}
static inline bool __isShared(const void*) { return true; }
namespace ww { inline thread_local const char* last_shared = nullptr; }  // of this block: addresses of shared memory have 32 bits (shared_at)
template <class T> static inline size_t __cvta_generic_to_shared(T* p) { ww::last_shared = (const char*)p; return (size_t)p; }
#define __builtin_assume(x) ((void)0)

// Bits.
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
static inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __ffsll(long long v) { return __builtin_ffsll(v); }
static inline unsigned __brev(unsigned v) {
  v = (v >> 16) | (v << 16);
  v = ((v & 0xff00ff00u) >> 8) | ((v & 0x00ff00ffu) << 8);
  v = ((v & 0xf0f0f0f0u) >> 4) | ((v & 0x0f0f0f0fu) << 4);
  v = ((v & 0xccccccccu) >> 2) | ((v & 0x33333333u) << 2);
  return ((v & 0xaaaaaaaau) >> 1) | ((v & 0x55555555u) << 1);
}
static inline unsigned long long __brevll(unsigned long long v) { return ((unsigned long long)__brev((unsigned)v) << 32) | __brev((unsigned)(v >> 32)); }
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { s &= 31; return s ? (hi << s) | (lo >> (32 - s)) : hi; }
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) { s &= 31; return s ? (hi << (32 - s)) | (lo >> s) : lo; }
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  const unsigned long long v = ((unsigned long long)b << 32) | a;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= (unsigned)((v >> (8 * ((s >> (4 * i)) & 7))) & 0xff) << (8 * i);
  return r;
}
// prmt: as __byte_perm, but bit 3 of a selector gives eight times the byte's sign.
static inline unsigned ww_permuted(unsigned a, unsigned b, unsigned s) {
  const unsigned bytes = __byte_perm(a, b, s);
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) { const unsigned byte = bytes >> (8 * i) & 0xff; r |= (s >> (4 * i) & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (8 * i); }
  return r;
}
// The lanes that a shuffle of PTX is among, by its last operand; others than whole segments are not offered.
static inline int ww_shuffle_width(unsigned c, bool up) {
  const unsigned width = 32 - (c >> 8 & 31);
  if ((width & (width - 1)) || (up ? c & 31 : (c & (width - 1)) != width - 1)) { std::fprintf(stderr, "expected a shuffle among 1, 2, 4, ... lanes, saw %#x\n", c); std::abort(); }
  return (int)width;
}
static inline int __mul24(int a, int b) { return (int)((unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8)); }
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
static inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
static inline long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)(((unsigned __int128)a * b) >> 64); }
static inline unsigned __sad(int a, int b, unsigned c) { return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c; }
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
static inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static inline int __dp4a(int a, int b, int c) {
  unsigned sum = (unsigned)c;
  for (int i = 0; i < 4; ++i) sum += (unsigned)((int)(signed char)(a >> (8 * i)) * (int)(signed char)(b >> (8 * i)));
  return (int)sum;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff);
  return c;
}
static inline int __dp4a(char4 a, char4 b, int c) { return __dp4a(ww::bits<int>(a), ww::bits<int>(b), c); }
static inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { return __dp4a(ww::bits<unsigned>(a), ww::bits<unsigned>(b), c); }

// Reinterpretation and conversion.
static inline int __float_as_int(float v) { return ww::bits<int>(v); }
static inline unsigned __float_as_uint(float v) { return ww::bits<unsigned>(v); }
static inline float __int_as_float(int v) { return ww::bits<float>(v); }
static inline float __uint_as_float(unsigned v) { return ww::bits<float>(v); }
static inline long long __double_as_longlong(double v) { return ww::bits<long long>(v); }
static inline double __longlong_as_double(long long v) { return ww::bits<double>(v); }
static inline int __double2hiint(double v) { return (int)(ww::bits<unsigned long long>(v) >> 32); }
static inline int __double2loint(double v) { return (int)ww::bits<unsigned long long>(v); }
static inline double __hiloint2double(int hi, int lo) { return ww::bits<double>(((unsigned long long)(unsigned)hi << 32) | (unsigned)lo); }
namespace ww {
// v, a whole number in F, as PTX converts it: what is beyond T is the nearest of T, and NaN is 0, or the highest bit alone where 64 bits take part.
template <class T, class F> static inline __attribute__((always_inline)) T whole(F v) {
  constexpr bool wide = sizeof(T) == 8 || sizeof(F) == 8;
  constexpr F low = (F)std::numeric_limits<T>::min(), above = 2 * (F)(std::numeric_limits<T>::max() / 2 + 1);
#ifdef __x86_64__
  if constexpr (std::is_same_v<T, int> && sizeof(F) == 4) {  // its instruction gives the least for all that is beyond an int
    const int r = v >= above ? std::numeric_limits<int>::max() : (int)v;
    return v == v ? r : 0;
  }
#endif
  return v >= above ? std::numeric_limits<T>::max() : v >= low ? (T)v : v < low ? std::numeric_limits<T>::min() : wide ? (T)((T)1 << (8 * sizeof(T) - 1)) : (T)0;
}
// Half a turn is 1: sines of whole and cosines of odd halves are zero, and large numbers lose nothing.
template <class F> static inline F sine_of_turns(F v) {
  const F r = v - 2 * std::nearbyint(v / 2), s = std::sin((F)3.14159265358979323846 * (std::fabs(r) > (F)0.5 ? std::copysign((F)1, r) - r : r));
  return s == 0 ? std::copysign(s, v) : s;
}
template <class F> static inline F cosine_of_turns(F v) { return std::sin((F)3.14159265358979323846 * ((F)0.5 - std::fabs(v - 2 * std::nearbyint(v / 2)))); }
// exp(v * v) * erfc(v), where the first factor grows beyond its type by its series in 1 / v.
static inline double scaled_erfc(double v) {
  if (!(v >= 10)) return std::exp(v * v) * std::erfc(v);
  const double by = -0.5 / v / v;
  double sum = 1;
  for (int k = 15; k > 0; --k) sum = 1 + (2 * k - 1) * by * sum;
  return 0.56418958354775629 / v * sum;
}
}  // namespace ww
#define WW_ROUNDED(F, T, NAME) \
  static inline T NAME##_rn(F v) { return ww::whole<T>(std::nearbyint(v)); } \
  static inline T NAME##_rz(F v) { return ww::whole<T>(std::trunc(v)); } \
  static inline T NAME##_ru(F v) { return ww::whole<T>(std::ceil(v)); } \
  static inline T NAME##_rd(F v) { return ww::whole<T>(std::floor(v)); }
WW_ROUNDED(float, int, __float2int)
WW_ROUNDED(float, unsigned, __float2uint)
WW_ROUNDED(float, long long, __float2ll)
WW_ROUNDED(float, unsigned long long, __float2ull)
WW_ROUNDED(double, int, __double2int)
WW_ROUNDED(double, unsigned, __double2uint)
WW_ROUNDED(double, long long, __double2ll)
WW_ROUNDED(double, unsigned long long, __double2ull)
static inline float __int2float_rn(int v) { return (float)v; }
static inline float __uint2float_rn(unsigned v) { return (float)v; }
static inline float __ll2float_rn(long long v) { return (float)v; }
static inline float __ull2float_rn(unsigned long long v) { return (float)v; }
static inline double __int2double_rn(int v) { return v; }
static inline double __uint2double_rn(unsigned v) { return v; }
static inline double __ll2double_rn(long long v) { return (double)v; }
static inline float __double2float_rn(double v) { return (float)v; }

// Arithmetic and mathematics that <cmath> has not.
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float __fsqrt_rn(float a) { return std::sqrt(a); }
static inline float __frsqrt_rn(float a) { return 1.0f / std::sqrt(a); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline double __drcp_rn(double a) { return 1.0 / a; }
static inline double __dsqrt_rn(double a) { return std::sqrt(a); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float fdividef(float a, float b) { return a / b; }
static inline float ww_expf(float v) { return std::exp(v); }
static inline float ww_exp10f(float v) { return std::pow(10.0f, v); }
static inline float ww_logf(float v) { return std::log(v); }
static inline float ww_log2f(float v) { return std::log2(v); }
static inline float ww_log10f(float v) { return std::log10(v); }
static inline float ww_sinf(float v) { return std::sin(v); }
static inline float ww_cosf(float v) { return std::cos(v); }
static inline float ww_tanf(float v) { return std::tan(v); }
static inline float ww_powf(float a, float b) { return std::pow(a, b); }
#define __expf ww_expf
#define __exp10f ww_exp10f
#define __logf ww_logf
#define __log2f ww_log2f
#define __log10f ww_log10f
#define __sinf ww_sinf
#define __cosf ww_cosf
#define __tanf ww_tanf
#define __powf ww_powf
#define __sincosf ww_sincosf
#define __tanhf ww_tanhf
static inline void ww_sincosf(float v, float* s, float* c) { *s = std::sin(v); *c = std::cos(v); }
static inline void sincospif(float v, float* s, float* c) { *s = ww::sine_of_turns(v); *c = ww::cosine_of_turns(v); }
static inline void sincospi(double v, double* s, double* c) { *s = ww::sine_of_turns(v); *c = ww::cosine_of_turns(v); }
static inline float sinpif(float v) { return ww::sine_of_turns(v); }
static inline float cospif(float v) { return ww::cosine_of_turns(v); }
static inline double sinpi(double v) { return ww::sine_of_turns(v); }
static inline double cospi(double v) { return ww::cosine_of_turns(v); }
static inline float __saturatef(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }
static inline float rsqrtf(float v) { return 1.0f / std::sqrt(v); }
static inline double rsqrt(double v) { return 1.0 / std::sqrt(v); }
static inline float rcbrtf(float v) { return 1.0f / std::cbrt(v); }
static inline double rcbrt(double v) { return 1.0 / std::cbrt(v); }
static inline float norm3df(float a, float b, float c) { return (float)std::sqrt((double)a * a + (double)b * b + (double)c * c); }  // no square is too large, nor too small
static inline double norm3d(double a, double b, double c) { return std::hypot(std::hypot(a, b), c); }
static inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
static inline double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
static inline float norm4df(float a, float b, float c, float d) { return (float)std::sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d); }
static inline float rhypotf(float a, float b) { return 1.0f / std::hypot(a, b); }
static inline float normcdff(float v) { return 0.5f * std::erfc(-v * 0.70710678f); }
static inline double normcdf(double v) { return 0.5 * std::erfc(-v * 0.70710678118654752); }
static inline float erfcxf(float v) { return (float)ww::scaled_erfc(v); }
static inline double erfcx(double v) { return ww::scaled_erfc(v); }
static inline float ww_tanhf(float v) { return std::tanh(v); }
static inline long long llmin(long long a, long long b) { return a < b ? a : b; }
static inline long long llmax(long long a, long long b) { return a > b ? a : b; }
