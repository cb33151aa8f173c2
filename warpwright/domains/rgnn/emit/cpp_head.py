"""What every generated C++ kernel begins with: vectors, sums in memory, and products of a tile of rows with a weight."""

HEAD = r"""
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#if defined(__AVX512F__)
#define BYTES 64
#else
#define BYTES 32
#endif
typedef @T T;
typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
enum { W = BYTES / sizeof(T) };
#define UNROLL _Pragma("GCC unroll 16")
static const int AHEAD = 8;  // edges between a row's prefetch and its use

// e to the x: Cephes' polynomial in float, which the compiler vectorises; 0 below 2^-126
static inline float power(float x) {
  x = x < -104.0f ? -104.0f : x; x = x > 89.0f ? 89.0f : x;
  const float n = std::rint(x * 1.44269504088896341f);
  float r = x - n * 0.693359375f; r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f; p = p * r + 8.3334519073e-3f; p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f; p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // in two steps: 2^128 is no float, but e^88.7 is
  const int half = (int)n >> 1, rest = (int)n - half;
  const int low = (half + 127) << 23, high = (rest + 127) << 23;
  float a, b; std::memcpy(&a, &low, 4); std::memcpy(&b, &high, 4);
  return x <= -104.0f ? 0.0f : p * a * b;
}
static inline double power(double x) { return std::exp(x); }
static inline T largest(T a, T b) { return a > b || a != a ? a : b; }

// adds a row to a row in memory; a row that threads share is added to atomically
static inline void add(T* __restrict to, const T* __restrict from, long count, bool shared) {
  if (shared) {
    for (long k = 0; k < count; ++k) {
#pragma omp atomic
      to[k] += from[k];
    }
  } else for (long k = 0; k < count; ++k) to[k] += from[k];
}
static inline void raise_to(T* to, const T* from, long count, bool shared) {
  if (shared) {
#pragma omp critical
    for (long k = 0; k < count; ++k) to[k] = largest(to[k], from[k]);
  } else for (long k = 0; k < count; ++k) to[k] = largest(to[k], from[k]);
}
static inline void lock(char* flag) { while (__atomic_test_and_set(flag, __ATOMIC_ACQUIRE)) sched_yield(); }
static inline void unlock(char* flag) { __atomic_clear(flag, __ATOMIC_RELEASE); }

template <int N> static inline void fetch_row(const T* row) {
  for (int k = 0; k < N; k += 64 / sizeof(T)) __builtin_prefetch(row + k);
}

template <int N> static inline T inner(const T* __restrict a, const T* __restrict b) {
  V sum = {}, more = {};
  UNROLL for (int k = 0; k + 2 * W <= N; k += 2 * W) {
    sum += *(const V*)(a + k) * *(const V*)(b + k);
    more += *(const V*)(a + k + W) * *(const V*)(b + k + W);
  }
  if (N % (2 * W) >= W) sum += *(const V*)(a + N / (2 * W) * 2 * W) * *(const V*)(b + N / (2 * W) * 2 * W);
  sum += more;
  T total = 0;
  for (int half = W / 2; half >= 1; half /= 2)
    for (int l = 0; l < half; ++l) sum[l] += sum[l + half];
  total = sum[0];
  for (int k = N / W * W; k < N; ++k) total += a[k] * b[k];
  return total;
}

// c[m][n] = sum_k a[m][k] w[k][n]: M rows and V vectors of columns in registers
template <int M, int VECTORS> static inline void product_block(int K, const T* a, long as, const T* w, long ws, T* c, long cs) {
  V sum[M][VECTORS] = {};
  for (int k = 0; k < K; ++k) {
    V b[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; ++v) b[v] = *(const V*)(w + k * ws + v * W);
    UNROLL for (int m = 0; m < M; ++m) {
      const T x = a[m * as + k];
      UNROLL for (int v = 0; v < VECTORS; ++v) sum[m][v] += x * b[v];
    }
  }
  UNROLL for (int m = 0; m < M; ++m) UNROLL for (int v = 0; v < VECTORS; ++v) *(V*)(c + m * cs + v * W) = sum[m][v];
}
template <int VECTORS> static inline void product_rows(int rows, int K, const T* a, long as, const T* w, long ws, T* c, long cs) {
  int m = 0;
  for (; m + 6 <= rows; m += 6) product_block<6, VECTORS>(K, a + m * as, as, w, ws, c + m * cs, cs);
  for (; m + 2 <= rows; m += 2) product_block<2, VECTORS>(K, a + m * as, as, w, ws, c + m * cs, cs);
  for (; m < rows; ++m) product_block<1, VECTORS>(K, a + m * as, as, w, ws, c + m * cs, cs);
}
template <int K, int N> static void product(int rows, const T* a, long as, const T* w, long ws, T* c, long cs) {
  int n = 0;
  for (; n + 2 * W <= N; n += 2 * W) product_rows<2>(rows, K, a, as, w + n, ws, c + n, cs);
  for (; n + W <= N; n += W) product_rows<1>(rows, K, a, as, w + n, ws, c + n, cs);
  if (n < N)
    for (int m = 0; m < rows; ++m) {
      T sum[W] = {};
      for (int k = 0; k < K; ++k)
        for (int l = 0; l < N % W; ++l) sum[l] += a[m * as + k] * w[k * ws + n + l];
      for (int l = 0; l < N % W; ++l) c[m * cs + n + l] = sum[l];
    }
}

// c[k][n] += sum_m a[m][k] b[m][n]: the gradient of a weight
template <int M, int VECTORS> static inline void outer_block(int rows, const T* a, long as, const T* b, long bs, T* c, long cs) {
  V sum[M][VECTORS];
  UNROLL for (int k = 0; k < M; ++k) UNROLL for (int v = 0; v < VECTORS; ++v) sum[k][v] = *(V*)(c + k * cs + v * W);
  for (int m = 0; m < rows; ++m) {
    V y[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; ++v) y[v] = *(const V*)(b + m * bs + v * W);
    UNROLL for (int k = 0; k < M; ++k) {
      const T x = a[m * as + k];
      UNROLL for (int v = 0; v < VECTORS; ++v) sum[k][v] += x * y[v];
    }
  }
  UNROLL for (int k = 0; k < M; ++k) UNROLL for (int v = 0; v < VECTORS; ++v) *(V*)(c + k * cs + v * W) = sum[k][v];
}
template <int K, int N> static void outer(int rows, const T* a, long as, const T* b, long bs, T* c, long cs) {
  if (rows <= 0) return;
  for (int k = 0; k < K;) {
    const bool many = k + 6 <= K;
    int n = 0;
    for (; n + 2 * W <= N; n += 2 * W)
      many ? outer_block<6, 2>(rows, a + k, as, b + n, bs, c + k * cs + n, cs) : outer_block<1, 2>(rows, a + k, as, b + n, bs, c + k * cs + n, cs);
    for (; n + W <= N; n += W)
      many ? outer_block<6, 1>(rows, a + k, as, b + n, bs, c + k * cs + n, cs) : outer_block<1, 1>(rows, a + k, as, b + n, bs, c + k * cs + n, cs);
    for (; n < N; ++n)
      for (int l = 0; l < (many ? 6 : 1); ++l) {
        T sum = 0;
        for (int m = 0; m < rows; ++m) sum += a[m * as + k + l] * b[m * bs + n];
        c[(k + l) * cs + n] += sum;
      }
    k += many ? 6 : 1;
  }
}
"""
"""`@T` is the type of numbers. A thread works on ranges of nodes of its own, so only rows cut between threads are added atomically."""
