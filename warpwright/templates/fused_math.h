// Functions of one float as torch has them: what the generated kernels of domains/graph/cuda call. Inf and NaN behave as in torch.
// The names are those of domains/graph/cpp/vector_math.cpp, where they take vectors: one table of expressions serves both.
typedef float vf;
typedef bool vi;
#define INF __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

// Elements in memory: bfloat16 is the upper half of a float, rounded to the nearest (even).
struct bf16 {
    unsigned short bits;
};
// Hopper's own conversions take an instruction for one element, or for two that are rounded together; elsewhere, and in translations for a CPU, they
// are spelled out in operations of bits. Both round to the nearest (even), and a NaN stays one.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HALVES_IN_HARDWARE
#endif
// float16: a number below 2^-14 has no leading one; times 2^112 as bits of a float it is right all the same, and rounded where it was cut off.
struct f16 {
    unsigned short bits;
};
#ifdef HALVES_IN_HARDWARE
__device__ __forceinline__ float of_half(unsigned h) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)h));
    return x;
}
__device__ __forceinline__ unsigned both_small(float low, float high) {
    unsigned two;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}
__device__ __forceinline__ unsigned to_half(float x) { return both_small(x, 0.f) & 0xffffu; }
__device__ __forceinline__ unsigned both(float low, float high) {
    unsigned two;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}
__device__ __forceinline__ unsigned upper(float x) { return both(x, 0.f) & 0xffffu; }
#else
__device__ __forceinline__ float of_half(unsigned h) {
    const float x = __uint_as_float((h & 0x7fffu) << 13) * 5.192296858534828e33f;  // 2^112
    const unsigned u = (h & 0x7c00u) == 0x7c00u ? 0x7f800000u | (h & 0x3ffu) << 13 : __float_as_uint(x);
    return __uint_as_float(u | (h & 0x8000u) << 16);
}
__device__ __forceinline__ unsigned to_half(float x) {
    const float size = fabsf(x);
    const unsigned u = __float_as_uint(size * 1.925929944387236e-34f);  // 2^-112
    unsigned h = (u + 0xfffu + ((u >> 13) & 1u)) >> 13;
    h = size >= 65520.f ? 0x7c00u : x != x ? 0x7e00u : h;
    return h | (__float_as_uint(x) >> 16 & 0x8000u);
}
__device__ __forceinline__ unsigned both_small(float low, float high) { return to_half(low) | to_half(high) << 16; }
__device__ __forceinline__ unsigned upper(float x) {
    const unsigned u = __float_as_uint(x);
    return x != x ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}
__device__ __forceinline__ unsigned both(float low, float high) { return upper(low) | upper(high) << 16; }
#endif
__device__ __forceinline__ float number(float x) { return x; }
__device__ __forceinline__ float number(f16 x) { return of_half(x.bits); }
__device__ __forceinline__ float number(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ float number(int x) { return (float)x; }
__device__ __forceinline__ float number(long long x) { return (float)x; }
__device__ __forceinline__ float number(bool x) { return (float)x; }
__device__ __forceinline__ float number(unsigned char x) { return (float)x; }
__device__ __forceinline__ void put(float* p, float x) { *p = x; }
__device__ __forceinline__ void put(bf16* p, float x) { p->bits = (unsigned short)upper(x); }
__device__ __forceinline__ void put(f16* p, float x) { p->bits = (unsigned short)to_half(x); }
__device__ __forceinline__ void put(long long* p, int x) { *p = x; }

// A vector of `width` elements at an address that is a multiple of its size; store_past does not keep it in L2.
template <int width>
__device__ __forceinline__ void load(float (&x)[width], const float* p) {
    if constexpr (width == 2) {
        const float2 v = *(const float2*)p;
        x[0] = v.x, x[1] = v.y;
    } else {
#pragma unroll
        for (int i = 0; i < width; i += 4) {
            const float4 v = *(const float4*)(p + i);
            x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
        }
    }
}
__device__ __forceinline__ void halves(float* x, unsigned two) {
    x[0] = __uint_as_float(two << 16), x[1] = __uint_as_float(two & 0xffff0000u);
}
template <int width>
__device__ __forceinline__ void load(float (&x)[width], const bf16* p) {
    if constexpr (width == 2) {
        halves(x, *(const unsigned*)p);
    } else if constexpr (width == 4) {
        const uint2 v = *(const uint2*)p;
        halves(x, v.x), halves(x + 2, v.y);
    } else {
        const uint4 v = *(const uint4*)p;
        halves(x, v.x), halves(x + 2, v.y), halves(x + 4, v.z), halves(x + 6, v.w);
    }
}
__device__ __forceinline__ void small_halves(float* x, unsigned two) { x[0] = of_half(two & 0xffffu), x[1] = of_half(two >> 16); }
template <int width>
__device__ __forceinline__ void load(float (&x)[width], const f16* p) {
    if constexpr (width == 2) {
        small_halves(x, *(const unsigned*)p);
    } else if constexpr (width == 4) {
        const uint2 v = *(const uint2*)p;
        small_halves(x, v.x), small_halves(x + 2, v.y);
    } else {
        const uint4 v = *(const uint4*)p;
        small_halves(x, v.x), small_halves(x + 2, v.y), small_halves(x + 4, v.z), small_halves(x + 6, v.w);
    }
}
template <int width>
__device__ __forceinline__ void store(float* p, const float (&x)[width]) {
    if constexpr (width == 1) *p = x[0];
    if constexpr (width == 2) *(float2*)p = make_float2(x[0], x[1]);
    if constexpr (width >= 4) {
#pragma unroll
        for (int i = 0; i < width; i += 4) *(float4*)(p + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
    }
}
template <int width>
__device__ __forceinline__ void store_past(float* p, const float (&x)[width]) {
    if constexpr (width == 1) __stcs(p, x[0]);
    if constexpr (width == 2) __stcs((float2*)p, make_float2(x[0], x[1]));
    if constexpr (width >= 4) {
#pragma unroll
        for (int i = 0; i < width; i += 4) __stcs((float4*)(p + i), make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]));
    }
}
template <int width>
__device__ __forceinline__ void store(bf16* p, const float (&x)[width]) {
    if constexpr (width == 1) put(p, x[0]);
    if constexpr (width == 2) *(unsigned*)p = both(x[0], x[1]);
    if constexpr (width == 4) *(uint2*)p = make_uint2(both(x[0], x[1]), both(x[2], x[3]));
    if constexpr (width == 8) *(uint4*)p = make_uint4(both(x[0], x[1]), both(x[2], x[3]), both(x[4], x[5]), both(x[6], x[7]));
}
template <int width>
__device__ __forceinline__ void store_past(bf16* p, const float (&x)[width]) {
    if constexpr (width == 1) put(p, x[0]);
    if constexpr (width == 2) __stcs((unsigned*)p, both(x[0], x[1]));
    if constexpr (width == 4) __stcs((uint2*)p, make_uint2(both(x[0], x[1]), both(x[2], x[3])));
    if constexpr (width == 8) __stcs((uint4*)p, make_uint4(both(x[0], x[1]), both(x[2], x[3]), both(x[4], x[5]), both(x[6], x[7])));
}
template <int width>
__device__ __forceinline__ void store(f16* p, const float (&x)[width]) {
    if constexpr (width == 1) put(p, x[0]);
    if constexpr (width == 2) *(unsigned*)p = both_small(x[0], x[1]);
    if constexpr (width == 4) *(uint2*)p = make_uint2(both_small(x[0], x[1]), both_small(x[2], x[3]));
    if constexpr (width == 8)
        *(uint4*)p = make_uint4(both_small(x[0], x[1]), both_small(x[2], x[3]), both_small(x[4], x[5]), both_small(x[6], x[7]));
}
template <int width>
__device__ __forceinline__ void store_past(f16* p, const float (&x)[width]) {
    store<width>(p, x);
}

// Copies from global to shared memory that no register and no thread waits for (cp.async, from Ampere on): all of a block's are on their way at once,
// where a copy through registers is waited for before its value is stored. From nowhere come zeros. The thread that has asked for them waits with
// copies_done(), then for the others of its block. Elsewhere they are plain copies.
template <int floats>
__device__ __forceinline__ void copy_ahead(float* to, const float* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = from ? 4 * floats : 0;
    if constexpr (floats == 4)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
#else
#pragma unroll
    for (int i = 0; i < floats; ++i) to[i] = from ? from[i] : 0.f;
#endif
}
__device__ __forceinline__ void copies_done() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Has L2 read what a later block will load: a hint, for which nothing waits.
template <typename T>
__device__ __forceinline__ void fetch_ahead(const T* p, int count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    const unsigned long long from = __cvta_generic_to_global(p) & ~15ull, to = __cvta_generic_to_global(p + count) & ~15ull;
    if (count > 0 && to > from) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((unsigned)(to - from)));
#endif
    (void)p, (void)count;
}

__device__ __forceinline__ float splat(float x) { return x; }
__device__ __forceinline__ float pick(bool m, float a, float b) { return m ? a : b; }
__device__ __forceinline__ float vabs(float x) { return fabsf(x); }
__device__ __forceinline__ float vsqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ float vexp(float x) { return expf(x); }
__device__ __forceinline__ float vexpm1(float x) { return expm1f(x); }
__device__ __forceinline__ float vlog(float x) { return logf(x); }
__device__ __forceinline__ float vlog1p(float x) { return log1pf(x); }
__device__ __forceinline__ float vtanh(float x) { return tanhf(x); }
__device__ __forceinline__ float verf(float x) { return erff(x); }
// Quotients without the branch of `/`, behind which the next element's instructions wait: the product by a reciprocal that is off by one unit in the
// last place, and what is left of x by that, added. It rounds as `/` does but for one quotient in a million, where the next number is taken. Zero and
// Inf are right as the product has them. at_least_one: y is one or more (above 2^126 the quotient is zero), or NaN; quotient: any y.
__device__ __forceinline__ float quotient_at_least_one(float x, float y) {
#ifdef __CUDA_ARCH__
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
    const float q = x * r;
    return q != 0.f && fabsf(q) < INF ? __fmaf_rn(__fmaf_rn(-y, q, x), r, q) : q;
#else
    return x / y;
#endif
}
__device__ __forceinline__ float quotient(float x, float y) {
#ifdef __CUDA_ARCH__
    const float size = fabsf(y), scale = size < 2.350988702e-38f ? 1073741824.f : size > 4.253529587e37f ? 9.313225746e-10f : 1.f;
    return quotient_at_least_one(x * scale, y * scale);  // between 2^-125 and 2^125 a reciprocal is no subnormal number
#else
    return x / y;
#endif
}
__device__ __forceinline__ float vsigmoid(float x) { return quotient_at_least_one(1.f, 1.f + expf(-x)); }
__device__ __forceinline__ float vsilu(float x) { return quotient_at_least_one(x, 1.f + expf(-x)); }
__device__ __forceinline__ float vgelu(float x) { return x * 0.5f * (1.f + erff(x * 0.70710678118654752f)); }
__device__ __forceinline__ float vgelu_tanh(float x) {
    return 0.5f * x * (1.f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}
__device__ __forceinline__ float vmish(float x) {  // tanh(log(1 + e)) = n / (n + 2)
    const float e = expf(x > 20.f ? 20.f : x), n = e * (e + 2.f);
    return x > 20.f ? x : x * (n / (n + 2.f));
}
__device__ __forceinline__ float vsoftplus(float x) { return (x < 0.f ? 0.f : x) + log1pf(expf(-fabsf(x))); }
// Of NaN and a number NaN, as torch has it: one instruction in place of three.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ float vmax(float a, float b) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}
__device__ __forceinline__ float vmin(float a, float b) {
    float smaller;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
    return smaller;
}
#else
__device__ __forceinline__ float vmax(float a, float b) { return b != b ? b : a < b ? b : a; }
__device__ __forceinline__ float vmin(float a, float b) { return b != b ? b : a > b ? b : a; }
#endif
__device__ __forceinline__ float vclamp(float x, float low, float high) { x = x < low ? low : x; return x > high ? high : x; }
__device__ __forceinline__ float vsign(float x) { return x > 0.f ? 1.f : x < 0.f ? -1.f : 0.f; }  // NaN gives 0, as torch.sign has it

// The index in a tensor of `size` that is rolled by `shift`, and the one that a tensor of indices holds: a wrong one ends the kernel, as in torch.
__device__ __forceinline__ int turned(int at, int shift, int size) { return at < shift ? at - shift + size : at - shift; }
__device__ __forceinline__ long long row_at(long long i, long long size) {
    if (i < 0 || i >= size) __trap();
    return i;
}
// Resampling: the place between neighbours that are `ratio` apart, and from it the lower neighbour, or the one `up` from it, and how far it lies from
// the lower one. The expressions are torch's, so that they round as its own.
__device__ __forceinline__ float between_places(int at, float ratio, bool corners) {
    if (corners) return ratio * (float)at;
    const float place = ratio * ((float)at + 0.5f) - 0.5f;
    return place < 0.f ? 0.f : place;
}
__device__ __forceinline__ int below(int at, float ratio, bool corners, int last, int up) {
    const int low = (int)between_places(at, ratio, corners), clamped = low < last ? low : last;
    return clamped + (up && clamped < last ? 1 : 0);
}
__device__ __forceinline__ float between(int at, float ratio, bool corners) {
    const float place = between_places(at, ratio, corners);
    return place - (float)(int)place;
}
__device__ __forceinline__ int nearest(int at, float ratio, float middle, int last) {
    const int place = (int)floorf(((float)at + middle) * ratio);
    return place < last ? place : last;
}
// The k-th of four neighbours of a place, or the border where there is none, and its share in the cubic polynomial through them.
__device__ __forceinline__ float cubic_place(int at, float ratio, bool corners) {
    return corners ? ratio * (float)at : ratio * ((float)at + 0.5f) - 0.5f;
}
__device__ __forceinline__ int cubic_at(int at, float ratio, bool corners, int last, int k) {
    const int place = (int)floorf(cubic_place(at, ratio, corners)) - 1 + k;
    return place < 0 ? 0 : place < last ? place : last;
}
__device__ __forceinline__ float cubic_share(int at, float ratio, bool corners, int k) {
    const float place = cubic_place(at, ratio, corners), t = place - floorf(place), near = k < 2 ? t : 1.f - t, far = near + 1.f;
    if (k == 1 || k == 2) return (1.25f * near - 2.25f) * near * near + 1.f;
    return ((-0.75f * far + 3.75f) * far - 6.f) * far + 3.f;
}
__device__ __forceinline__ long long row_from_end(long long i, long long size) { return row_at(i < 0 ? i + size : i, size); }

// The larger, or the smaller, of what is at a place and of v, NaN before all others as in torch. Most find a larger one there and write nothing.
__device__ __forceinline__ void atomic_max(float* place, float v) {
    unsigned* bits = (unsigned*)place;
    unsigned old = __float_as_uint(*(volatile float*)place);
    while (__uint_as_float(old) == __uint_as_float(old) && !(v <= __uint_as_float(old))) {
        const unsigned seen = atomicCAS(bits, old, __float_as_uint(v));
        if (seen == old) return;
        old = seen;
    }
}
__device__ __forceinline__ void atomic_min(float* place, float v) {
    unsigned* bits = (unsigned*)place;
    unsigned old = __float_as_uint(*(volatile float*)place);
    while (__uint_as_float(old) == __uint_as_float(old) && !(v >= __uint_as_float(old))) {
        const unsigned seen = atomicCAS(bits, old, __float_as_uint(v));
        if (seen == old) return;
        old = seen;
    }
}
__device__ __forceinline__ void atomic_mul(float* place, float v) {
    unsigned* bits = (unsigned*)place;
    unsigned old = __float_as_uint(*(volatile float*)place);
    while (true) {
        const unsigned seen = atomicCAS(bits, old, __float_as_uint(__uint_as_float(old) * v));
        if (seen == old) return;
        old = seen;
    }
}

// How many elements of a pool's window at output `o` lie inside.
__device__ __forceinline__ int inside(int o, int stride, int padding, int kernel, int size) {
    const int from = o * stride - padding, to = from + kernel;
    return (to < size ? to : size) - (from > 0 ? from : 0);
}

// Reductions. A sum and the moments are kept in double: one or three operations of a unit that is idle in such a kernel (an H200 could sum
// 20 TB/s so, and reads 4.2), and the error of a long sum is then that of rounding its result.
// sum + x * x: the square of a float is exact in a double, so that one rounding is all there is, in one instruction or two.
__device__ __forceinline__ double square_added(float x, double sum) {
#ifdef __CUDA_ARCH__
    return __fma_rn((double)x, (double)x, sum);
#else
    return sum + (double)x * (double)x;
#endif
}
struct Moments {  // the mean, and the sum of squared differences from it
    float mean, m2;
};
__device__ __forceinline__ Moments moments(double sum, double squares, double count) {
    const double m2 = squares - sum * (sum / count);
    Moments made;
    made.mean = (float)(sum / count);
    made.m2 = (float)(m2 < 0 ? 0 : m2);
    return made;
}
// The largest of some x, and the first place where it stands, as torch has it: NaN is the largest, and zeros of either sign are equal. Without a
// branch: behind one the next element was read only when it was decided (columns of 4,096 took 7.5 to 9.3 ms on an H200, their sum 2.6).
__device__ __forceinline__ void first(float& top, int& place, float x, int at) {
    const bool missing = top != top, before = at < place, absent = x != x;
    const bool taken = (absent & (!missing | before)) | (!missing & ((x > top) | ((x == top) & before)));
    top = taken ? x : top;
    place = taken ? at : place;
}
// The maximum of some x, and the sum of exp(x - maximum); relative to 0 where the maximum is not finite.
__device__ __forceinline__ void join(float& top, float& total, float other_top, float other_total) {
    const float both = vmax(top, other_top), shift = fabsf(both) == INF ? 0.f : both;
    total = total * expf(top - shift) + other_total * expf(other_top - shift);
    top = both;
}
__device__ __forceinline__ void join(float& top, float& total, const float* x, int count) {
    float both = top;
#pragma unroll
    for (int i = 0; i < count; ++i) both = vmax(both, x[i]);
    const float shift = fabsf(both) == INF ? 0.f : both;
    total *= expf(top - shift);
#pragma unroll
    for (int i = 0; i < count; ++i) total += expf(x[i] - shift);
    top = both;
}
