// Functions of one float as torch has them: what the generated kernels of domains/graph/cuda call. Inf and NaN behave as in torch.
// The names are those of domains/graph/cpp/vector_math.cpp, where they take vectors: one table of expressions serves both.
typedef float vf;
typedef bool vi;
#define INF __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

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
__device__ __forceinline__ float vsigmoid(float x) { return 1.f / (1.f + expf(-x)); }
__device__ __forceinline__ float vsilu(float x) { return x / (1.f + expf(-x)); }
__device__ __forceinline__ float vgelu(float x) { return x * 0.5f * (1.f + erff(x * 0.70710678118654752f)); }
__device__ __forceinline__ float vgelu_tanh(float x) {
    return 0.5f * x * (1.f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}
__device__ __forceinline__ float vmish(float x) {  // tanh(log(1 + e)) = n / (n + 2)
    const float e = expf(x > 20.f ? 20.f : x), n = e * (e + 2.f);
    return x > 20.f ? x : x * (n / (n + 2.f));
}
__device__ __forceinline__ float vsoftplus(float x) { return (x < 0.f ? 0.f : x) + log1pf(expf(-fabsf(x))); }
__device__ __forceinline__ float vmax(float a, float b) { return b != b ? b : a < b ? b : a; }
__device__ __forceinline__ float vmin(float a, float b) { return b != b ? b : a > b ? b : a; }
__device__ __forceinline__ float vclamp(float x, float low, float high) { x = x < low ? low : x; return x > high ? high : x; }
__device__ __forceinline__ float vsign(float x) { return x > 0.f ? 1.f : x < 0.f ? -1.f : 0.f; }  // NaN gives 0, as torch.sign has it

// Reductions. A sum and the moments are kept in double: one or three operations of a unit that is idle in such a kernel (an H200 could sum
// 20 TB/s so, and reads 4.2), and the error of a long sum is then that of rounding its result.
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
