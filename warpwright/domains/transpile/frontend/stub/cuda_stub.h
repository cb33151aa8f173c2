// What the parser needs to know of CUDA and the standard library: declarations only. The runtime (runtime/*.hpp) has the definitions.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define __forceinline__ inline
#define __inline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define HD __attribute__((host)) __attribute__((device))
typedef unsigned long size_t; typedef long ptrdiff_t; typedef long ssize_t; typedef unsigned long uintptr_t; typedef long intptr_t;
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned char uchar; typedef unsigned long ulong;
typedef long clock_t; typedef long time_t; typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned long uint64_t;
namespace ww {  // of shifts in device code
template <bool> struct number {}; template <> struct number<true> { typedef int type; };
template <class N> struct Amount { N value; HD constexpr operator N() const { return value; } };
template <class N> HD constexpr Amount<N> by(N n) { return {n}; }
template <class T, class N, class = typename number<__is_integral(T) || __is_enum(T)>::type> HD constexpr auto operator<<(T x, Amount<N> n) { return x << n.value; }
template <class T, class N, class = typename number<__is_integral(T) || __is_enum(T)>::type> HD constexpr auto operator>>(T x, Amount<N> n) { return x >> n.value; }
template <class T, class N, class = typename number<__is_integral(T) || __is_enum(T)>::type> HD constexpr T& operator<<=(T& x, Amount<N> n) { return x <<= n.value; }
template <class T, class N, class = typename number<__is_integral(T) || __is_enum(T)>::type> HD constexpr T& operator>>=(T& x, Amount<N> n) { return x >>= n.value; }
}
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; HD constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {} HD constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {} };
extern __device__ const uint3 threadIdx, blockIdx;
extern __device__ const dim3 blockDim, gridDim;
extern __device__ const int warpSize;
#define V(T, N, A2, A4) struct N##1 { T x; }; struct alignas(A2) N##2 { T x, y; }; struct N##3 { T x, y, z; }; struct alignas(A4) N##4 { T x, y, z, w; }; \
  HD N##1 make_##N##1(T); HD N##2 make_##N##2(T, T); HD N##3 make_##N##3(T, T, T); HD N##4 make_##N##4(T, T, T, T);
V(float, float, 8, 16) V(double, double, 16, 16) V(int, int, 8, 16) V(short, short, 4, 8) V(signed char, char, 2, 4) V(unsigned char, uchar, 2, 4)
V(unsigned short, ushort, 4, 8) V(long, long, 16, 16) V(unsigned long, ulong, 16, 16) V(long long, longlong, 16, 16) V(unsigned long long, ulonglong, 16, 16)
#undef V
struct uint1 { unsigned x; }; struct alignas(8) uint2 { unsigned x, y; }; struct alignas(16) uint4 { unsigned x, y, z, w; };
HD uint2 make_uint2(unsigned, unsigned); HD uint3 make_uint3(unsigned, unsigned, unsigned); HD uint4 make_uint4(unsigned, unsigned, unsigned, unsigned);

namespace ww { __device__ char* shared_at(unsigned); } HD size_t __cvta_generic_to_shared(const void*);
struct curandStatePhilox4_32_10 { uint4 ctr, output; uint2 key; unsigned used; }; typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
__device__ void curand_init(unsigned long long, unsigned long long, unsigned long long, curandStatePhilox4_32_10*); __device__ unsigned curand(curandStatePhilox4_32_10*);
__device__ uint4 curand4(curandStatePhilox4_32_10*); __device__ float curand_uniform(curandStatePhilox4_32_10*); __device__ float4 curand_uniform4(curandStatePhilox4_32_10*);
__device__ double curand_uniform_double(curandStatePhilox4_32_10*); __device__ float2 curand_normal2(curandStatePhilox4_32_10*); __device__ float curand_normal(curandStatePhilox4_32_10*); __device__ double curand_normal_double(curandStatePhilox4_32_10*);
struct curandStateXORWOW : curandStatePhilox4_32_10 {}; struct curandStateMRG32k3a : curandStatePhilox4_32_10 {}; typedef curandStateXORWOW curandState; typedef curandStateXORWOW curandState_t;

typedef unsigned long long cudaTextureObject_t;
template <class T> __device__ T tex1Dfetch(cudaTextureObject_t, int); template <class T> __device__ T tex1D(cudaTextureObject_t, float);
template <class T> __device__ T tex2D(cudaTextureObject_t, float, float); template <class T> __device__ T tex3D(cudaTextureObject_t, float, float, float);
template <class T> __device__ void tex1Dfetch(T*, cudaTextureObject_t, int); template <class T> __device__ void tex2D(T*, cudaTextureObject_t, float, float);
template <class T> __device__ void tex3D(T*, cudaTextureObject_t, float, float, float);
template <class T> __device__ T tex1DLayered(cudaTextureObject_t, float, int); template <class T> __device__ T tex2DLayered(cudaTextureObject_t, float, float, int);
template <class T> __device__ T texCubemap(cudaTextureObject_t, float, float, float); template <class T> __device__ T texCubemapLayered(cudaTextureObject_t, float, float, float, int);
typedef unsigned long long cudaSurfaceObject_t; enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
#define S(N, ...) template <class T> __device__ T surf##N##read(cudaSurfaceObject_t, __VA_ARGS__, cudaSurfaceBoundaryMode = cudaBoundaryModeTrap); \
  template <class T> __device__ void surf##N##read(T*, cudaSurfaceObject_t, __VA_ARGS__, cudaSurfaceBoundaryMode = cudaBoundaryModeTrap); \
  template <class T> __device__ void surf##N##write(T, cudaSurfaceObject_t, __VA_ARGS__, cudaSurfaceBoundaryMode = cudaBoundaryModeTrap);
S(1D, int) S(2D, int, int) S(3D, int, int, int) S(1DLayered, int, int) S(2DLayered, int, int, int) S(Cubemap, int, int, int) S(CubemapLayered, int, int, int)
#undef S
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat }; template <class T, cudaTextureReadMode> struct ww_read { typedef T type; };
template <> struct ww_read<unsigned char, cudaReadModeNormalizedFloat> { typedef float type; }; template <> struct ww_read<signed char, cudaReadModeNormalizedFloat> { typedef float type; };
template <> struct ww_read<char, cudaReadModeNormalizedFloat> { typedef float type; }; template <> struct ww_read<uchar4, cudaReadModeNormalizedFloat> { typedef float4 type; };
template <> struct ww_read<short, cudaReadModeNormalizedFloat> { typedef float type; }; template <> struct ww_read<unsigned short, cudaReadModeNormalizedFloat> { typedef float type; };
template <class T, int A = 1, cudaTextureReadMode M = cudaReadModeElementType> struct texture { int normalized; };
#define R(N, ...) template <class T, int A, cudaTextureReadMode M> __device__ typename ww_read<T, M>::type N(const texture<T, A, M>&, __VA_ARGS__);
R(tex1Dfetch, int) R(tex1D, float) R(tex2D, float, float) R(tex3D, float, float, float)
#undef R
__device__ void __syncthreads(); __device__ int __syncthreads_or(int); __device__ int __syncthreads_and(int); __device__ int __syncthreads_count(int);
__device__ void __syncwarp(unsigned = 0xffffffff); __device__ void __threadfence(); __device__ void __threadfence_block(); __device__ void __threadfence_system();
template <class T> __device__ T __shfl_down_sync(unsigned, T, unsigned, int = 32); template <class T> __device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32);
template <class T> __device__ T __shfl_xor_sync(unsigned, T, int, int = 32); template <class T> __device__ T __shfl_sync(unsigned, T, int, int = 32);
template <class T> __device__ T __shfl_down(T, unsigned, int = 32); template <class T> __device__ T __shfl_up(T, unsigned, int = 32);
template <class T> __device__ T __shfl_xor(T, int, int = 32); template <class T> __device__ T __shfl(T, int, int = 32);
__device__ unsigned __ballot_sync(unsigned, int); __device__ int __all_sync(unsigned, int); __device__ int __any_sync(unsigned, int); __device__ unsigned __activemask();
__device__ unsigned __ballot(int); __device__ int __all(int); __device__ int __any(int); __device__ unsigned __lanemask_lt();
template <class T> __device__ unsigned __match_any_sync(unsigned, T); template <class T> __device__ unsigned __match_all_sync(unsigned, T, int*);
template <class T> __device__ T __reduce_add_sync(unsigned, T); template <class T> __device__ T __reduce_min_sync(unsigned, T); template <class T> __device__ T __reduce_max_sync(unsigned, T);
template <class T> __device__ T __reduce_and_sync(unsigned, T); template <class T> __device__ T __reduce_or_sync(unsigned, T); template <class T> __device__ T __reduce_xor_sync(unsigned, T);
#define A(N) template <class T, class V> __device__ T N(T*, V); template <class T, class V> __device__ T N##_block(T*, V); template <class T, class V> __device__ T N##_system(T*, V);
A(atomicAdd) A(atomicSub) A(atomicMax) A(atomicMin) A(atomicExch) A(atomicAnd) A(atomicOr) A(atomicXor) A(atomicInc) A(atomicDec)
#undef A
template <class T> __device__ T __nv_atomic_load_n(const T*, int, int = 3); template <class T, class V> __device__ void __nv_atomic_store_n(T*, V, int, int = 3); template <class T, class V> __device__ T __nv_atomic_exchange_n(T*, V, int, int = 3);
#define A(N) template <class T, class V> __device__ T __nv_atomic_fetch_##N(T*, V, int, int = 3);
A(add) A(sub) A(min) A(max)
#undef A
enum { __NV_ATOMIC_RELAXED, __NV_ATOMIC_CONSUME, __NV_ATOMIC_ACQUIRE, __NV_ATOMIC_RELEASE, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_THREAD = 0, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER, __NV_THREAD_SCOPE_DEVICE, __NV_THREAD_SCOPE_SYSTEM };
template <class T, class C, class V> __device__ T atomicCAS(T*, C, V); template <class T, class C, class V> __device__ T atomicCAS_block(T*, C, V);
#define L(N) template <class T> __device__ T N(const T*);
L(__ldg) L(__ldcs) L(__ldca) L(__ldcg) L(__ldlu) L(__ldcv)
#undef L
#define S(N) template <class T, class V> __device__ void N(T*, V);
S(__stcs) S(__stcg) S(__stwb) S(__stwt)
#undef S

#define F1(N) HD double N(double); HD float N(float); HD float N##f(float); namespace std { using ::N; }
#define F2(N) HD double N(double, double); HD float N(float, float); HD float N##f(float, float); namespace std { using ::N; }
F1(exp) F1(exp2) F1(exp10) F1(expm1) F1(log) F1(log2) F1(log10) F1(log1p) F1(sqrt) F1(cbrt) F1(sin) F1(cos) F1(tan) F1(asin) F1(acos) F1(atan) F1(sinh) F1(cosh) F1(tanh)
F1(asinh) F1(acosh) F1(atanh) F1(erf) F1(erfc) F1(erfinv) F1(tgamma) F1(lgamma) F1(ceil) F1(floor) F1(trunc) F1(round) F1(rint) F1(nearbyint) F1(fabs) F1(rsqrt) F1(rcbrt)
F1(normcdf) F1(erfcx) F1(sinpi) F1(cospi) F1(logb) F1(j0) F1(j1) F1(y0) F1(y1)
F2(pow) F2(fmod) F2(atan2) F2(fmax) F2(fmin) F2(hypot) F2(fdim) F2(copysign) F2(remainder) F2(nextafter) F2(rhypot)
HD double pow(double, int); HD float pow(float, int); HD double pow(float, double); HD double pow(double, float); HD float powif(float, int); HD double powi(double, int);
HD float fmaf(float, float, float); HD double fma(double, double, double); HD float fma(float, float, float); HD float ldexpf(float, int); HD double ldexp(double, int); HD float ldexp(float, int);
HD float scalbnf(float, int); HD double scalbn(double, int); HD float frexpf(float, int*); HD double frexp(double, int*); HD float modff(float, float*); HD double modf(double, double*);
HD void sincosf(float, float*, float*); HD void sincos(double, double*, double*); HD void sincospif(float, float*, float*); HD void sincospi(double, double*, double*); HD void __sincosf(float, float*, float*);
HD long lroundf(float); HD long lround(double); HD long lrintf(float); HD long lrint(double); HD long long llround(double); HD long long llroundf(float); HD int ilogbf(float); HD int ilogb(double);
HD int abs(int); HD long abs(long); HD long long abs(long long); HD float abs(float); HD double abs(double); HD long labs(long); HD long long llabs(long long);
#define I1(N) HD float N(float);
I1(__expf) I1(__exp10f) I1(__logf) I1(__log2f) I1(__log10f) I1(__sinf) I1(__cosf) I1(__tanf) I1(__tanhf) I1(__saturatef) I1(__frcp_rn) I1(__fsqrt_rn) I1(__frsqrt_rn) I1(normcdff_)
HD float __powf(float, float); HD float __fdividef(float, float); HD float fdividef(float, float); HD float __fadd_rn(float, float); HD float __fsub_rn(float, float); HD float __fmul_rn(float, float);
HD float __fdiv_rn(float, float); HD float __fmaf_rn(float, float, float); HD double __dadd_rn(double, double); HD double __dsub_rn(double, double); HD double __dmul_rn(double, double);
HD double __ddiv_rn(double, double); HD double __fma_rn(double, double, double); HD double __drcp_rn(double); HD double __dsqrt_rn(double);
#define D1(N, T) HD T N##_rd(T); HD T N##_ru(T); HD T N##_rz(T);
#define D2(N, T) HD T N##_rd(T, T); HD T N##_ru(T, T); HD T N##_rz(T, T);
D2(__fadd, float) D2(__fsub, float) D2(__fmul, float) D2(__fdiv, float) D1(__fsqrt, float) D1(__frcp, float) D2(__dadd, double) D2(__dsub, double) D2(__dmul, double) D2(__ddiv, double)
D1(__dsqrt, double) D1(__drcp, double) HD float __fmaf_rd(float, float, float); HD float __fmaf_ru(float, float, float); HD float __fmaf_rz(float, float, float);
HD float __double2float_rd(double); HD float __double2float_ru(double); HD float __double2float_rz(double);
HD float norm3df(float, float, float); HD double norm3d(double, double, double); HD float rnorm3df(float, float, float); HD double rnorm3d(double, double, double); HD float norm4df(float, float, float, float);
HD bool isnan(float); HD bool isnan(double); HD bool isinf(float); HD bool isinf(double); HD bool isfinite(float); HD bool isfinite(double); HD bool signbit(float); HD bool signbit(double);
HD int min(int, int); HD unsigned min(unsigned, unsigned); HD long min(long, long); HD unsigned long min(unsigned long, unsigned long); HD float min(float, float); HD double min(double, double);
HD long long min(long long, long long); HD unsigned long long min(unsigned long long, unsigned long long); HD unsigned min(int, unsigned); HD unsigned min(unsigned, int);
HD int max(int, int); HD unsigned max(unsigned, unsigned); HD long max(long, long); HD unsigned long max(unsigned long, unsigned long); HD float max(float, float); HD double max(double, double);
HD long long max(long long, long long); HD unsigned long long max(unsigned long long, unsigned long long); HD unsigned max(int, unsigned); HD unsigned max(unsigned, int);
HD long min(long, int); HD long min(int, long); HD long max(long, int); HD long max(int, long); HD double max(float, double); HD double max(double, float); HD double min(float, double); HD double min(double, float);
HD float max(float, int); HD float max(int, float); HD float min(float, int); HD float min(int, float); HD unsigned long max(unsigned long, unsigned); HD unsigned long min(unsigned long, unsigned);
HD unsigned umin(unsigned, unsigned); HD unsigned umax(unsigned, unsigned); HD long long llmin(long long, long long); HD long long llmax(long long, long long);
HD int __popc(unsigned); HD int __popcll(unsigned long long); HD int __clz(int); HD int __clzll(long long); HD int __ffs(int); HD int __ffsll(long long); HD unsigned __brev(unsigned);
HD unsigned long long __brevll(unsigned long long); HD unsigned __funnelshift_l(unsigned, unsigned, unsigned); HD unsigned __funnelshift_r(unsigned, unsigned, unsigned);
HD unsigned __byte_perm(unsigned, unsigned, unsigned); HD unsigned ww_permuted(unsigned, unsigned, unsigned); HD int ww_shuffle_width(unsigned, bool); HD int __mul24(int, int); HD unsigned __umul24(unsigned, unsigned); HD int __mulhi(int, int); HD unsigned __umulhi(unsigned, unsigned);
HD long long __mul64hi(long long, long long); HD unsigned long long __umul64hi(unsigned long long, unsigned long long); HD unsigned __sad(int, int, unsigned); HD unsigned __usad(unsigned, unsigned, unsigned);
HD int __dp4a(int, int, int); HD unsigned __dp4a(unsigned, unsigned, unsigned); HD int __dp4a(char4, char4, int); HD unsigned __dp4a(uchar4, uchar4, unsigned); HD int __hadd(int, int);
#define V1(N) HD unsigned N##2(unsigned); HD unsigned N##4(unsigned);
#define V2(N) HD unsigned N##2(unsigned, unsigned); HD unsigned N##4(unsigned, unsigned);
#define VC(N) V2(__vcmp##N) V2(__vset##N)
V1(__vabs) V1(__vabsss) V1(__vneg) V1(__vnegss) V2(__vadd) V2(__vaddss) V2(__vaddus) V2(__vsub) V2(__vsubss) V2(__vsubus) V2(__vavgs) V2(__vavgu) V2(__vhaddu) V2(__vabsdiffs) V2(__vabsdiffu) V2(__vsads) V2(__vsadu)
V2(__vmaxs) V2(__vmaxu) V2(__vmins) V2(__vminu) VC(eq) VC(ne) VC(ges) VC(geu) VC(gts) VC(gtu) VC(les) VC(leu) VC(lts) VC(ltu)
#define VI(M, N, T) HD T __vi##M##_##N(T, T); HD T __vi##M##3_##N(T, T, T); HD T __viadd##M##_##N(T, T, T);
#define VR(M, N, T) VI(M, N, T) VI(M, N##_relu, T)
VR(max, s32, int) VR(min, s32, int) VI(max, u32, unsigned) VI(min, u32, unsigned) VR(max, s16x2, unsigned) VR(min, s16x2, unsigned) VI(max, u16x2, unsigned) VI(min, u16x2, unsigned)
HD int __vibmax_s32(int, int, bool*); HD int __vibmin_s32(int, int, bool*); HD unsigned __vibmax_u32(unsigned, unsigned, bool*); HD unsigned __vibmin_u32(unsigned, unsigned, bool*);
HD unsigned __vibmax_s16x2(unsigned, unsigned, bool*, bool*); HD unsigned __vibmin_s16x2(unsigned, unsigned, bool*, bool*); HD unsigned __vibmax_u16x2(unsigned, unsigned, bool*, bool*); HD unsigned __vibmin_u16x2(unsigned, unsigned, bool*, bool*);
#undef V1
#undef V2
#undef VC
#undef VI
#undef VR

HD int __float_as_int(float); HD unsigned __float_as_uint(float); HD float __int_as_float(int); HD float __uint_as_float(unsigned); HD long long __double_as_longlong(double); HD double __longlong_as_double(long long);
HD int __double2hiint(double); HD int __double2loint(double); HD double __hiloint2double(int, int);
#define R(F, T, N) HD T N##_rn(F); HD T N##_rz(F); HD T N##_ru(F); HD T N##_rd(F);
R(float, int, __float2int) R(float, unsigned, __float2uint) R(float, long long, __float2ll) R(float, unsigned long long, __float2ull) R(double, int, __double2int) R(double, unsigned, __double2uint)
R(double, long long, __double2ll) R(double, unsigned long long, __double2ull) R(int, float, __int2float) R(unsigned, float, __uint2float) R(long long, float, __ll2float) R(unsigned long long, float, __ull2float)
R(int, double, __int2double) R(double, float, __double2float)
#undef R
HD double __uint2double_rn(unsigned); HD double __ll2double_rn(long long);
HD long long clock64(); HD long clock(); HD long ww_clock(); HD unsigned long long __globaltimer(); __device__ void __trap(); __device__ void __nanosleep(unsigned);
extern "C" HD int printf(const char*, ...); extern "C" HD void* memcpy(void*, const void*, size_t); extern "C" HD void* memset(void*, int, size_t); HD void assert(bool);
extern "C" HD void* malloc(size_t); extern "C" HD void free(void*); extern "C" void exit(int); extern "C" HD int rand();

#define SMALL(N, P) struct N##_raw { unsigned short x; }; struct N { unsigned short stored; N() = default; HD N(N##_raw); HD operator N##_raw() const; HD N(float); HD N(double); HD N(int); HD N(unsigned); HD operator float() const; HD N& operator+=(N); HD N& operator-=(N); HD N& operator*=(N); HD N& operator/=(N); }; \
  HD N operator+(N, N); HD N operator-(N, N); HD N operator*(N, N); HD N operator/(N, N); HD N operator-(N); HD bool operator<(N, N); HD bool operator>(N, N); HD bool operator<=(N, N); HD bool operator>=(N, N); HD bool operator==(N, N); \
  struct alignas(4) P { N x, y; P() = default; HD P(N, N); }; HD P operator+(P, P); HD P operator*(P, P); HD P operator-(P, P); \
  HD N __hadd(N, N); HD N __hsub(N, N); HD N __hmul(N, N); HD N __hdiv(N, N); HD N __hfma(N, N, N); HD N __hneg(N); HD N __habs(N); HD N __hmax(N, N); HD N __hmin(N, N); \
  HD bool __hgt(N, N); HD bool __hge(N, N); HD bool __hlt(N, N); HD bool __hle(N, N); HD bool __heq(N, N); HD bool __hne(N, N); HD bool __hisnan(N); HD N hexp(N); HD N hlog(N); HD N hsqrt(N); HD N hrsqrt(N); HD N hrcp(N); HD N htanh(N); \
  HD P __hadd2(P, P); HD P __hsub2(P, P); HD P __hmul2(P, P); HD P __h2div(P, P); HD P __hfma2(P, P, P); HD P __hmax2(P, P); HD P __hmin2(P, P); HD P h2exp(P); \
  HD N hlog2(N); HD N hlog10(N); HD N hexp2(N); HD N hfloor(N); HD N hceil(N); HD N htrunc(N); HD N hrint(N); HD N hsin(N); HD N hcos(N); HD N hexp10(N); HD N htanh_approx(N); HD P h2tanh(P); HD P h2tanh_approx(P); HD P __hneg2(P); HD P __habs2(P); HD P __hgt2(P, P); HD P __hge2(P, P); HD P __hlt2(P, P); HD P __hle2(P, P); HD P __heq2(P, P);
SMALL(__half, __half2) SMALL(__nv_bfloat16, __nv_bfloat162)
#undef SMALL
typedef unsigned char __nv_fp8_storage_t; typedef unsigned short __nv_fp8x2_storage_t; enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 }; enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
HD __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t, __nv_fp8_interpretation_t); HD __nv_fp8_storage_t __nv_cvt_float_to_fp8(float, __nv_saturation_t, __nv_fp8_interpretation_t);
HD __nv_fp8_storage_t __nv_cvt_double_to_fp8(double, __nv_saturation_t, __nv_fp8_interpretation_t); HD __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw, __nv_saturation_t, __nv_fp8_interpretation_t);
#define FP8(N) struct N { __nv_fp8_storage_t __x; N() = default; HD explicit N(float); HD explicit N(double); HD explicit N(int); HD explicit N(unsigned); HD explicit N(__half); HD explicit N(__nv_bfloat16); \
  HD explicit operator float() const; HD explicit operator double() const; HD explicit operator int() const; HD explicit operator bool() const; HD explicit operator __half() const; HD explicit operator __nv_bfloat16() const; };
FP8(__nv_fp8_e4m3) FP8(__nv_fp8_e5m2)
#undef FP8
typedef __half half; typedef __half2 half2; typedef __nv_bfloat16 nv_bfloat16; typedef __nv_bfloat162 nv_bfloat162;
HD float __half2float(__half); HD __half __float2half(float); HD __half __float2half_rn(float); HD __half __double2half(double); HD __half __int2half_rn(int); HD int __half2int_rn(__half); HD int __half2int_rz(__half);
HD __half2 __floats2half2_rn(float, float); HD __half2 __float22half2_rn(float2); HD __half2 __float2half2_rn(float); HD float2 __half22float2(__half2); HD __half2 __halves2half2(__half, __half); HD __half2 __half2half2(__half); HD __half2 make_half2(__half, __half);
HD __half __low2half(__half2); HD __half __high2half(__half2); HD float __low2float(__half2); HD float __high2float(__half2); HD unsigned short __half_as_ushort(__half); HD __half __ushort_as_half(unsigned short);
HD unsigned short __bfloat16_as_ushort(__nv_bfloat16); HD __nv_bfloat16 __ushort_as_bfloat16(unsigned short); HD int __bfloat162int_rn(__nv_bfloat16); HD int __bfloat162int_rz(__nv_bfloat16); HD __nv_bfloat16 __int2bfloat16_rn(int);
HD __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16); HD __nv_bfloat162 make_bfloat162(__nv_bfloat16, __nv_bfloat16); HD __nv_bfloat162 __halves2bfloat162(__nv_bfloat16, __nv_bfloat16); HD __nv_bfloat16 __low2bfloat16(__nv_bfloat162); HD __nv_bfloat16 __high2bfloat16(__nv_bfloat162);
HD float __bfloat162float(__nv_bfloat16); HD __nv_bfloat16 __float2bfloat16(float); HD __nv_bfloat16 __float2bfloat16_rn(float); HD __nv_bfloat162 __floats2bfloat162_rn(float, float); HD __nv_bfloat162 __float22bfloat162_rn(float2); HD float2 __bfloat1622float2(__nv_bfloat162);

namespace std {
  template <class T> HD constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; } template <class T> HD constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
  template <class T> HD void swap(T&, T&); using ::abs; using ::isnan; using ::isinf; using ::isfinite; using ::size_t; using ::int64_t; using ::int32_t; using ::uint32_t; using ::uint64_t; using ::uint8_t; using ::int8_t; using ::fma;
  template <class T, T v> struct integral_constant { static constexpr T value = v; }; typedef integral_constant<bool, true> true_type; typedef integral_constant<bool, false> false_type;
  template <class A, class B> struct is_same : false_type {}; template <class A> struct is_same<A, A> : true_type {}; template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
  template <bool, class T = void> struct enable_if {}; template <class T> struct enable_if<true, T> { typedef T type; }; template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
  template <bool, class A, class B> struct conditional { typedef A type; }; template <class A, class B> struct conditional<false, A, B> { typedef B type; }; template <bool b, class A, class B> using conditional_t = typename conditional<b, A, B>::type;
  template <class T> struct remove_reference { typedef T type; }; template <class T> struct remove_reference<T&> { typedef T type; }; template <class T> HD typename remove_reference<T>::type&& move(T&&);
  template <class T> struct is_integral : false_type {}; template <class T> struct is_floating_point : false_type {}; template <class T> inline constexpr bool is_integral_v = false; template <class T> inline constexpr bool is_floating_point_v = false;
  template <class T> struct numeric_limits { HD static constexpr T max() { return T(); } HD static constexpr T min() { return T(); } HD static constexpr T lowest() { return T(); } HD static constexpr T infinity() { return T(); } HD static constexpr T epsilon() { return T(); } HD static constexpr T quiet_NaN() { return T(); } };
}
#define K(T, N, V) constexpr T N = V;
K(float, FLT_MAX, 3.402823466e+38f) K(float, FLT_MIN, 1.175494351e-38f) K(float, FLT_EPSILON, 1.192092896e-07f) K(double, DBL_MAX, 1.7976931348623158e+308) K(double, DBL_MIN, 2.2250738585072014e-308)
K(double, DBL_EPSILON, 2.2204460492503131e-16) K(int, INT_MAX, 2147483647) K(int, INT_MIN, -2147483647 - 1) K(unsigned, UINT_MAX, 4294967295u) K(long, LONG_MAX, 9223372036854775807l) K(unsigned long, ULONG_MAX, 18446744073709551615ul)
K(int, CHAR_BIT, 8) K(unsigned, UINT32_MAX, 4294967295u) K(int, INT32_MAX, 2147483647) K(long, INT64_MAX, 9223372036854775807l) K(unsigned long, UINT64_MAX, 18446744073709551615ul) K(int, UCHAR_MAX, 255) K(int, SHRT_MAX, 32767)
K(double, M_PI, 3.14159265358979323846) K(double, M_E, 2.7182818284590452354) K(double, M_SQRT2, 1.41421356237309504880) K(double, M_SQRT1_2, 0.70710678118654752440) K(double, M_2_SQRTPI, 1.12837916709551257390)
K(double, M_PI_2, 1.57079632679489661923) K(double, M_PI_4, 0.78539816339744830962) K(double, M_1_PI, 0.31830988618379067154) K(double, M_2_PI, 0.63661977236758134308) K(double, M_LN2, 0.69314718055994530942) K(double, M_LOG2E, 1.4426950408889634074)
K(float, CUDART_INF_F, __builtin_inff()) K(double, CUDART_INF, __builtin_inf()) K(float, CUDART_NAN_F, __builtin_nanf("")) K(float, CUDART_PI_F, 3.141592654f) K(double, CUDART_PI, 3.1415926535897931) K(float, CUDART_MAX_NORMAL_F, 3.402823466e+38f)
K(float, CUDART_SQRT_HALF_F, 0.707106781f) K(float, CUDART_SQRT_TWO_F, 1.41421356f) K(float, CUDART_THIRD_F, 0.333333333f) K(float, CUDART_PIO4_F, 0.785398163f) K(float, CUDART_PIO2_F, 1.57079633f) K(float, CUDART_3PIO4_F, 2.35619449f) K(float, CUDART_2_OVER_PI_F, 0.636619772f) K(float, CUDART_SQRT_2_OVER_PI_F, 0.797884561f) K(float, CUDART_L2E_F, 1.44269504f) K(float, CUDART_L2T_F, 3.32192809f) K(float, CUDART_LG2_F, 0.301029996f) K(float, CUDART_LGE_F, 0.434294482f) K(float, CUDART_LN2_F, 0.693147181f) K(float, CUDART_LNT_F, 2.30258509f) K(float, CUDART_LNPI_F, 1.14472989f) K(float, CUDART_ZERO_F, 0.0f) K(float, CUDART_NEG_ZERO_F, -0.0f) K(float, CUDART_ONE_F, 1.0f) K(double, CUDART_SQRT_HALF, 0.70710678118654757) K(double, CUDART_SQRT_TWO, 1.4142135623730951) K(double, CUDART_THIRD, 0.33333333333333331) K(double, CUDART_PIO4, 0.78539816339744828) K(double, CUDART_PIO2, 1.5707963267948966) K(double, CUDART_3PIO4, 2.3561944901923448) K(double, CUDART_2_OVER_PI, 0.63661977236758138) K(double, CUDART_SQRT_2_OVER_PI, 0.79788456080286541) K(double, CUDART_SQRT_PI, 1.7724538509055159) K(double, CUDART_L2E, 1.4426950408889634) K(double, CUDART_L2T, 3.3219280948873622) K(double, CUDART_LG2, 0.3010299956639812) K(double, CUDART_LGE, 0.43429448190325182) K(double, CUDART_LN2, 0.69314718055994529) K(double, CUDART_LNT, 2.3025850929940459) K(double, CUDART_LNPI, 1.1447298858494002) K(double, CUDART_ZERO, 0.0) K(double, CUDART_NEG_ZERO, -0.0) K(double, CUDART_ONE, 1.0) K(double, CUDART_NAN, __builtin_nan("")) K(float, CUDART_MIN_DENORM_F, 1.401298464e-45f) K(double, CUDART_MIN_DENORM, 4.9406564584124654e-324)
K(float, INFINITY, __builtin_inff()) K(float, HUGE_VALF, __builtin_inff()) K(double, HUGE_VAL, __builtin_inf()) K(float, NAN, __builtin_nanf("")) K(int, EXIT_SUCCESS, 0) K(int, EXIT_FAILURE, 1) K(int, RAND_MAX, 2147483647)
#undef K
#define NULL __null
typedef float2 cuFloatComplex; typedef double2 cuDoubleComplex; typedef cuFloatComplex cuComplex;
#define C(T, R, M, S) HD T M(R, R); HD R cuCreal##S(T); HD R cuCimag##S(T); HD T cuConj##S(T); HD T cuCadd##S(T, T); HD T cuCsub##S(T, T); HD T cuCmul##S(T, T); HD T cuCdiv##S(T, T); HD R cuCabs##S(T); HD T cuCfma##S(T, T, T);
C(cuFloatComplex, float, make_cuFloatComplex, f) C(cuDoubleComplex, double, make_cuDoubleComplex, )
#undef C
HD cuComplex make_cuComplex(float, float); HD cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex); HD cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex);
struct cudaExtent { size_t width, height, depth; }; struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
typedef struct CUstream_st* cudaStream_t; typedef struct CUevent_st* cudaEvent_t; typedef int cudaError_t;
extern "C" HD cudaError_t cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0); extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, void* = 0);
extern "C" cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
namespace cooperative_groups {  // what groups.py leaves; kernels that use it stay on fibers
struct ww_group { HD unsigned num_threads() const; HD unsigned size() const; HD unsigned thread_rank() const; HD void sync() const;
  template <class T> HD T shfl(T, int) const; template <class T> HD T shfl_down(T, unsigned) const; template <class T> HD T shfl_up(T, unsigned) const; template <class T> HD T shfl_xor(T, unsigned) const;
  HD int any(int) const; HD int all(int) const; HD unsigned ballot(int) const; template <class T> HD unsigned match_any(T) const; template <class T> HD unsigned match_all(T, int&) const;
  HD unsigned meta_group_rank() const; HD unsigned meta_group_size() const; HD unsigned long long block_rank() const; HD unsigned long long num_blocks() const; HD bool is_valid() const;
  HD dim3 group_index() const; HD dim3 thread_index() const; HD dim3 group_dim() const; HD dim3 dim_threads() const; HD dim3 dim_blocks() const; HD dim3 block_index() const; };
struct thread_block : ww_group {}; struct grid_group : ww_group {}; struct coalesced_group : ww_group {}; template <unsigned N, class P = void> struct thread_block_tile : ww_group {};
struct thread_group : ww_group { HD thread_group(); HD thread_group(const ww_group&); }; template <unsigned N, class P = void> struct block_tile_memory {};
HD thread_block this_thread_block(); template <class M> HD thread_block this_thread_block(M&); HD grid_group this_grid(); HD coalesced_group coalesced_threads();
template <unsigned N, class G> HD thread_block_tile<N> tiled_partition(const G&); template <class G> HD thread_group tiled_partition(const G&, unsigned);
template <class G, class L> HD coalesced_group labeled_partition(const G&, L); template <class G> HD coalesced_group binary_partition(const G&, bool); template <class G> HD void sync(const G&); template <class G> HD void wait(const G&);
template <class T> struct plus { HD T operator()(T, T) const; }; template <class T> struct less { HD T operator()(T, T) const; }; template <class T> struct greater { HD T operator()(T, T) const; };
template <class T> struct bit_and { HD T operator()(T, T) const; }; template <class T> struct bit_or { HD T operator()(T, T) const; }; template <class T> struct bit_xor { HD T operator()(T, T) const; };
template <class G, class T, class F> HD T reduce(const G&, T, F); template <class G, class T> HD T inclusive_scan(const G&, T); template <class G, class T, class F> HD T inclusive_scan(const G&, T, F);
template <class G, class T> HD T exclusive_scan(const G&, T); template <class G, class T, class F> HD T exclusive_scan(const G&, T, F); template <class G, class F> HD void invoke_one(const G&, F);
template <class G, class T, class N> HD void memcpy_async(const G&, T*, const T*, N); template <unsigned N = 0, class G> HD void wait_prior(const G&); }
HD void __pipeline_memcpy_async(void*, const void*, size_t, size_t = 0); HD void __pipeline_commit(); HD void __pipeline_wait_prior(size_t);
