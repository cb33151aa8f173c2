// Vectors of floats as GCC and Clang know them, functions on them, and reductions. Head of every generated source.
// Inf and NaN behave as in torch. Largest errors against double on all of float32: exp 1.1, log 1.1, tanh 1.7, erf 1.3 ulp.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <omp.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __SSE__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif
typedef float vf __attribute__((vector_size(W * 4)));
typedef int32_t vi __attribute__((vector_size(W * 4)));
constexpr float INF = std::numeric_limits<float>::infinity();
constexpr long CHUNK = 1024;  // elements summed in float before the sum goes to double

#define INLINE static inline __attribute__((always_inline))

INLINE vf splat(float x) { return x - vf{}; }  // one instruction; written as a loop over elements GCC 12 makes ten of it
INLINE vf pick(vi m, vf a, vf b) { return m ? a : b; }
INLINE vf bits(vi v) { return (vf)v; }
INLINE vi bits(vf v) { return (vi)v; }
INLINE vf vabs(vf x) { return bits(bits(x) & 0x7fffffff); }
INLINE vf copysign(vf x, vf sign) { return bits((bits(x) & 0x7fffffff) | (bits(sign) & (int32_t)0x80000000)); }
INLINE vf vsqrt(vf x) { vf y; for (int i = 0; i < W; ++i) y[i] = __builtin_sqrtf(x[i]); return y; }

// A step works on W elements, or on the last n of a row.
struct Full { static constexpr int n = W; };
struct Part { int n; };
INLINE vf keep(vf v, vf, Full) { return v; }
INLINE vf keep(vf v, vf other, Part part) { for (int i = 0; i < W; ++i) if (i >= part.n) v[i] = other[i]; return v; }

INLINE vf load(const float* p, Full) { vf v; memcpy(&v, p, sizeof v); return v; }
INLINE vf load(const float* p, Part part) { vf v = {}; memcpy(&v, p, part.n * sizeof(float)); return v; }
template <class T, class N> INLINE vf load(const T* p, N part) { vf v = {}; for (int i = 0; i < part.n; ++i) v[i] = (float)p[i]; return v; }
template <class N> INLINE vf load_at(const float* p, long, N) { return splat(*p); }
INLINE void store(float* p, vf v, Full) { memcpy(p, &v, sizeof v); }
INLINE void store(float* p, vf v, Part part) { memcpy(p, &v, part.n * sizeof(float)); }
INLINE void store(bool* p, vi v, Full) { for (int i = 0; i < W; ++i) p[i] = v[i] != 0; }
INLINE void store(bool* p, vi v, Part part) { for (int i = 0; i < part.n; ++i) p[i] = v[i] != 0; }
// Past the caches, for results larger than those: saves reading the line before writing it.
INLINE void stream(float* p, vf v, Full) {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#else
    memcpy(p, &v, sizeof v);
#endif
}
INLINE void stream(float* p, vf v, Part part) { store(p, v, part); }
INLINE bool aligned(const void* p) { return (uintptr_t)p % sizeof(vf) == 0; }
INLINE void fence() {
#ifdef __SSE__
    _mm_sfence();
#endif
}
// Ask for large pages for a result that is being made: one page fault for 2 MB instead of 512.
INLINE void large_pages(void* p, long bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t page = 4096, from = ((uintptr_t)p + page - 1) / page * page, to = ((uintptr_t)p + bytes) / page * page;
    if (to > from) madvise((void*)from, to - from, MADV_HUGEPAGE);
#endif
}

// --- functions -----------------------------------------------------------------------------------------------------

INLINE vf pow2(vi k) { return bits((k + 127) << 23); }
struct Exponent { vf r, p; vi k; };  // exp(x) = 2^k * (1 + p), with p = exp(r) - 1
INLINE Exponent split_exp(vf x) {
    vf c = x > 89.f ? splat(89.f) : x;
    c = c < -104.f ? splat(-104.f) : c;
    const vf t = c * 1.44269504f + 12582912.f, n = t - 12582912.f;  // 1.5 * 2^23: the sum's low bits are the rounded integer
    vf r = c - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    const vf q = (((1.381460184e-03f * r + 8.368715219e-03f) * r + 4.166838789e-02f) * r + 1.666652065e-01f) * r + 4.999999345e-01f;
    return {r, r * r * q + r, bits(t) - 0x4b400000};
}
INLINE vf vexp(vf x) {
    const Exponent e = split_exp(x);
    const vi half = e.k >> 1;
    return (e.p + 1.f) * pow2(half) * pow2(e.k - half);  // in two steps: 2^k itself may overflow or be subnormal
}
INLINE vf vexpm1(vf x) { return pick(vabs(x) < 0.34f, split_exp(x).p, vexp(x) - 1.f); }
INLINE vf vlog(vf x) {
    const vi tiny = x < 1.17549435e-38f;
    const vi i = bits(tiny ? x * 8388608.f : x) - 0x3f3504f3;  // mantissa in [sqrt(1/2), sqrt(2))
    const vf f = bits((i & 0x007fffff) + 0x3f3504f3) - 1.f;
    const vf e = __builtin_convertvector((i >> 23), vf) - (tiny ? splat(23.f) : splat(0.f));
    vf p = -7.634493025e-02f * f + 1.276157564e-01f;
    p = p * f - 1.316018306e-01f;
    p = p * f + 1.420175823e-01f;
    p = p * f - 1.662335730e-01f;
    p = p * f + 2.000122687e-01f;
    p = p * f - 2.500082104e-01f;
    p = p * f + 3.333333171e-01f;
    const vf low = f * f * f * p + (e * -2.12194440e-4f - 0.5f * f * f);
    vf y = e * 0.693359375f + (f + low);
    y = x == INF ? x : y;
    y = x == 0.f ? splat(-INF) : y;
    return x < 0.f || x != x ? splat(NAN) : y;
}
INLINE vf vlog1p(vf x) {
    const vf w = 1.f + x, y = vlog(w) + (x - (w - 1.f)) / w;
    return x == INF || x <= -1.f ? vlog(w) : y;
}
INLINE vf vtanh(vf x) {
    const vf a = vabs(x), z = a * a;
    const vf p = (((-5.704987456e-03f * z + 2.063908769e-02f) * z - 5.373971523e-02f) * z + 1.333144220e-01f) * z - 3.333328194e-01f;
    const vf big = 1.f - 2.f / (vexp(a + a) + 1.f);
    return copysign(a < 0.625f ? a * z * p + a : big, x);
}
INLINE vf vsigmoid(vf x) { return 1.f / (1.f + vexp(-x)); }
INLINE vf erf_inner(vf z2) {  // erf(z) / z on [-1, 1]
    vf p = 7.853896917e-05f * z2 - 8.010205285e-04f;
    p = p * z2 + 5.188329159e-03f;
    p = p * z2 - 2.685381283e-02f;
    p = p * z2 + 1.128358518e-01f;
    p = p * z2 - 3.761262583e-01f;
    return p * z2 + 1.128379166e+00f;
}
INLINE vf erfc_outer(vf a) {  // erfc(a) for a >= 1
    vf p = 1.612008428e-04f * a - 2.696926466e-03f;
    p = p * a + 2.082444996e-02f;
    p = p * a - 1.009761671e-01f;
    p = p * a - 6.406027908e-01f;
    p = p * a - 1.125612082e+00f;
    p = p * a - 7.031847239e-04f;
    return vexp(a > 4.2f ? -a * a - 2.3f : p);
}
INLINE vf verf(vf x) {
    const vf a = vabs(x);
    return a < 1.f ? x * erf_inner(x * x) : copysign(1.f - erfc_outer(a), x);
}
INLINE vf vgelu(vf x) {
    const vf z = x * 0.70710678f, a = vabs(z);
    const vf e = 0.5f * erfc_outer(a);
    return x * (a < 1.f ? 0.5f + 0.5f * z * erf_inner(z * z) : z > 0.f ? 1.f - e : e);
}
INLINE vf vgelu_tanh(vf x) { return x * vsigmoid(1.5957691216f * (x + 0.044715f * x * x * x)); }
INLINE vf vsilu(vf x) { return x / (1.f + vexp(-x)); }
INLINE vf vmish(vf x) {  // tanh(log(1 + e)) = n / (n + 2)
    const vf e = vexp(x > 20.f ? splat(20.f) : x), n = e * (e + 2.f);
    return x > 20.f ? x : x * (n / (n + 2.f));
}
INLINE vf vsoftplus(vf x) { return (x < 0.f ? splat(0.f) : x) + vlog1p(vexp(-vabs(x))); }
INLINE vf vmax(vf a, vf b) { return b != b ? b : a < b ? b : a; }
INLINE vf vmin(vf a, vf b) { return b != b ? b : a > b ? b : a; }
INLINE vf vclamp(vf x, float low, float high) { x = x < low ? splat(low) : x; return x > high ? splat(high) : x; }
INLINE vf vsign(vf x) { return x > 0.f ? splat(1.f) : x < 0.f ? splat(-1.f) : splat(0.f); }  // NaN gives 0, as torch.sign has it

// --- reductions ----------------------------------------------------------------------------------------------------
// add(v, slot, n) takes a step's values into one of four accumulators, flush() ends a chunk, merge() joins two threads.

// The sum of a vector's elements, in double. One after the other, three of them a row, they were most of a layer norm of rows of 16.
INLINE double total_of(vf v) {
#if defined(__AVX512F__)
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)v, 1));
    return _mm512_reduce_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)) + _mm512_cvtps_pd(high));
#elif defined(__AVX__)
    const __m256d s = _mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)) + _mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
    const __m128d t = _mm256_castpd256_pd128(s) + _mm256_extractf128_pd(s, 1);
    return t[0] + t[1];
#else
    double total = 0;
    for (int i = 0; i < W; ++i) total += v[i];
    return total;
#endif
}

struct Sum {
    vf a[4] = {};
    double total = 0;
    template <class N> __attribute__((always_inline)) void add(vf v, int slot, N n) { a[slot] += keep(v, splat(0.f), n); }
    __attribute__((always_inline)) void flush() {
        total += total_of((a[0] + a[1]) + (a[2] + a[3]));
        for (vf& x : a) x = vf{};
    }
    void merge(const Sum& other) { total += other.total; }
    vf value() const { return splat((float)total); }
};
struct Max {
    vf a[4] = {splat(-INF), splat(-INF), splat(-INF), splat(-INF)};
    template <class N> __attribute__((always_inline)) void add(vf v, int slot, N n) { a[slot] = vmax(a[slot], keep(v, splat(-INF), n)); }
    void flush() {}
    void merge(const Max& other) { for (int j = 0; j < 4; ++j) a[j] = vmax(a[j], other.a[j]); }
    vf value() const {
        const vf m = vmax(vmax(a[0], a[1]), vmax(a[2], a[3]));
        float best = m[0];
        for (int i = 1; i < W; ++i) best = m[i] != m[i] || m[i] > best ? m[i] : best;
        return splat(best);
    }
};
struct Min {
    Max m;
    template <class N> __attribute__((always_inline)) void add(vf v, int slot, N n) { m.add(-v, slot, n); }
    void flush() {}
    void merge(const Min& other) { m.merge(other.m); }
    vf value() const { return -m.value(); }
};
struct Moments {  // mean, and sum of squared differences from it: by chunks, two passes in L1 each, joined in double
    alignas(64) float chunk[CHUNK];
    long filled = 0;
    double count = 0, mean = 0, m2 = 0;
    template <class N> __attribute__((always_inline)) void add(vf v, int, N n) { store(chunk + filled, v, n); filled += n.n; }
    void join(double n, double other_mean, double other_m2) {
        const double all = count + n, d = other_mean - mean;
        if (n == 0) return;
        if (count == 0) {
            count = n, mean = other_mean, m2 = other_m2;
            return;
        }
        mean += d * n / all;
        m2 += other_m2 + d * d * count * n / all;
        count = all;
    }
    void flush() {
        Sum first, second, apart;
        const double each = 1 / (double)filled;
        over([&](vf v, int slot, auto n) { first.add(v, slot, n); });
        first.flush();
        const vf centre = splat((float)(first.total * each));  // off by what a sum in float is: `apart` says by how much
        over([&](vf v, int slot, auto n) {
            second.add((v - centre) * (v - centre), slot, n);
            apart.add(v - centre, slot, n);
        });
        second.flush();
        apart.flush();
        const double shift = apart.total * each;
        join((double)filled, (double)centre[0] + shift, second.total - (double)filled * shift * shift);
        filled = 0;
    }
    template <class F> __attribute__((always_inline)) void over(F f) {
        long k = 0;
        for (; k + 4 * W <= filled; k += 4 * W)
            for (int j = 0; j < 4; ++j) f(load(chunk + k + j * W, Full{}), j, Full{});
        for (; k + W <= filled; k += W) f(load(chunk + k, Full{}), 0, Full{});
        if (k < filled) f(load(chunk + k, Part{(int)(filled - k)}), 1, Part{(int)(filled - k)});
    }
    void merge(const Moments& other) { join(other.count, other.mean, other.m2); }
};
template <long N> struct FewMoments {  // the same of a row of N, which stays in registers: each vector has a slot of its own
    vf a[(N + W - 1) / W];
    double mean = 0, m2 = 0;
    template <class M> __attribute__((always_inline)) void add(vf v, int slot, M) { a[slot] = v; }
    __attribute__((always_inline)) void flush() {
        vf first = {}, second = {}, apart = {};
        over([&](vf v, auto n) { first += keep(v, splat(0.f), n); });
        const vf centre = splat((float)(total_of(first) * (1.0 / N)));
        over([&](vf v, auto n) {
            const vf d = keep(v - centre, splat(0.f), n);
            second += d * d;
            apart += d;
        });
        const double shift = total_of(apart) * (1.0 / N);
        mean = (double)centre[0] + shift;
        m2 = total_of(second) - N * shift * shift;
    }
    template <class F> __attribute__((always_inline)) void over(F f) {
#pragma GCC unroll 4
        for (int j = 0; j < N / W; ++j) f(a[j], Full{});
        if constexpr (N % W) f(a[N / W], Part{N % W});
    }
};
template <long N> using RowMoments = std::conditional_t<N <= 4 * W, FewMoments<N>, Moments>;

// Moments down columns (Chan's rule): to the `seen` elements of each lane, of which `mean` and `m2` tell, join `count` more, of which the sums of the
// differences from the pivot and of their squares are given. The mean is the next pivot.
INLINE void join(long lanes, double seen, double count, float* pivot, float* apart, float* squares, double* mean, double* m2) {
    const double each = 1 / count, share = count / (seen + count), between = seen * share;
    for (long j = 0; j < lanes; ++j) {
        const double by = apart[j] * each, before = seen ? mean[j] : 0, d = pivot[j] + by - before;
        m2[j] = (seen ? m2[j] : 0) + (squares[j] - apart[j] * by) + d * d * between;
        mean[j] = before + d * share;
        pivot[j] = (float)mean[j];
        apart[j] = squares[j] = 0;
    }
}

// Runs step(k, slot, n) over [from, to), and flush() after every chunk.
template <class S, class F> INLINE void along(long from, long to, S step, F flush) {
    for (long c = from; c < to; c += CHUNK) {
        const long end = c + CHUNK < to ? c + CHUNK : to;
        long k = c;
        for (; k + 4 * W <= end; k += 4 * W) {
            step(k, 0, Full{});
            step(k + W, 1, Full{});
            step(k + 2 * W, 2, Full{});
            step(k + 3 * W, 3, Full{});
        }
        for (; k + W <= end; k += W) step(k, 0, Full{});
        if (k < end) step(k, 1, Part{(int)(end - k)});
        flush();
    }
}
// The same over a whole row of N; each vector of a short one has a slot of its own.
template <long N, class S, class F> INLINE void along_row(S step, F flush) {
    if constexpr (N > 4 * W) along(0, N, step, flush);
    else {
#pragma GCC unroll 4
        for (int j = 0; j < N / W; ++j) step((long)j * W, j, Full{});
        if constexpr (N % W) step(N / W * W, N / W, Part{N % W});
        flush();
    }
}
