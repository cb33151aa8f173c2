// Class-wise depthwise convolution of uint8 images with fused 8-bit rescaling (CWC; definition: operator.py).
//
// Ladder (images/s on one core of an AMD EPYC 9004 without AVX-512; 32x32 k=3 / 224x224 k=9): see docs/unlearnable.md.
//   1  direct convolution from a padded float plane, weights broadcast once per ROWS x VECS vector block
// Weights are integers of 12 fractional bits, so float32 sums are exact in any order: bit-equal to int64.
// K is the filter side; ROWS, VECS and LANES are the tunables, declared by the build line (-DK=3 ...).
#include <cstdint>
#include <cstring>
#include <algorithm>
#include <vector>
#ifdef _OPENMP
#include <omp.h>
#endif

#ifndef LANES
#define LANES 8
#endif
#ifndef VECS
#define VECS 4
#endif
#ifndef ROWS
#define ROWS 2
#endif

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4)));
typedef int32_t ivec __attribute__((vector_size(LANES * 4), aligned(4)));
static constexpr int BLOCK = LANES * VECS;  // pixels of a row that one block computes

struct Shape { int64_t N, C, H, W, n_stride, c_stride, h_stride, w_stride; };  // strides in bytes, input and output alike

static void pad_plane(const uint8_t* x, const Shape& s, const int32_t* rows, const int32_t* cols, float* plane, int64_t pitch) {
  const int64_t left = K / 2, width = s.W;
  for (int64_t y = 0; y < s.H + K - 1; ++y) {
    float* out = plane + y * pitch;
    if (rows[y] < 0) { std::memset(out, 0, sizeof(float) * (s.W + K - 1)); continue; }
    const uint8_t* in = x + rows[y] * s.h_stride;
    if (s.w_stride == 1) { for (int64_t i = 0; i < width; ++i) out[left + i] = in[i]; }
    else { for (int64_t i = 0; i < width; ++i) out[left + i] = in[i * s.w_stride]; }
    for (int64_t i = 0; i < left; ++i) out[i] = cols[i] < 0 ? 0.f : float(in[cols[i] * s.w_stride]);
    for (int64_t i = left + width; i < width + K - 1; ++i) out[i] = cols[i] < 0 ? 0.f : float(in[cols[i] * s.w_stride]);
  }
}

// R x VECS vectors of outputs at (y, x); a weight is broadcast once for all of them.
template <int R>
static inline void block(const float* plane, int64_t pitch, const float* w, float* z, int64_t z_pitch) {
  vec acc[R][VECS];
  for (int r = 0; r < R; ++r) for (int v = 0; v < VECS; ++v) acc[r][v] = vec{};
  for (int i = 0; i < K; ++i)
#pragma GCC unroll 31
    for (int j = 0; j < K; ++j) {
      const vec weight = vec{} + w[i * K + j];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < VECS; ++v) acc[r][v] += weight * *(const vec*)(plane + (r + i) * pitch + j + v * LANES);
    }
  for (int r = 0; r < R; ++r) for (int v = 0; v < VECS; ++v) *(vec*)(z + r * z_pitch + v * LANES) = acc[r][v];
}

static void convolve_plane(const float* plane, int64_t pitch, const float* w, float* z, int64_t z_pitch, int64_t H, int64_t W) {
  for (int64_t y = 0; y < H;) {
    const bool full = y + ROWS <= H;
    for (int64_t x = 0; x < W; x += BLOCK) {
      if (full) block<ROWS>(plane + y * pitch + x, pitch, w, z + y * z_pitch + x, z_pitch);
      else block<1>(plane + y * pitch + x, pitch, w, z + y * z_pitch + x, z_pitch);
    }
    y += full ? ROWS : 1;
  }
}

static float plane_max(const float* z, int64_t z_pitch, int64_t H, int64_t W) {
  float top = 0.f;
  for (int64_t y = 0; y < H; ++y) {
    const float* row = z + y * z_pitch;
    float best = 0.f;
#pragma omp simd reduction(max : best)
    for (int64_t x = 0; x < W; ++x) best = row[x] > best ? row[x] : best;
    top = std::max(top, best);
  }
  return top;
}

// floor((a*z + b) / d) for 0 <= result <= 255. The float quotient is off by at most one; the remainder, exact modulo 2^32, mends it.
static void rescale_plane(const float* z, int64_t z_pitch, uint8_t* out, const Shape& s, uint32_t a, uint32_t b, uint32_t d) {
  const float inverse = float(a) / float(d), offset = float(b) / float(d);
  const int32_t divisor = int32_t(d);
  uint8_t line[BLOCK];
  for (int64_t y = 0; y < s.H; ++y) {
    const float* row = z + y * z_pitch;
    uint8_t* to = out + y * s.h_stride;
    for (int64_t x0 = 0; x0 < s.W; x0 += BLOCK) {
      const int64_t n = std::min<int64_t>(BLOCK, s.W - x0);
#pragma omp simd
      for (int i = 0; i < BLOCK; ++i) {
        const float value = row[x0 + i];  // the z rows are padded to whole blocks
        int32_t q = int32_t(value * inverse + offset);
        const int32_t rest = int32_t(a * uint32_t(int32_t(value)) + b - d * uint32_t(q));
        q += (rest >= divisor) - (rest < 0);
        line[i] = uint8_t(q);
      }
      uint8_t* at = to + x0 * s.w_stride;
      if (s.w_stride == 1) std::memcpy(at, line, n);
      else for (int64_t i = 0; i < n; ++i) at[i * s.w_stride] = line[i];
    }
  }
}

// images, out: uint8 with Shape's strides; labels [N]; bank [classes, K, K] and sums [classes] in units of 1/4096;
// rows [H+K-1], cols [W+K-1]: source indices of the padded positions, -1 for zero; by_max: 1 divides by the image's maximum, 0 by the filter's sum.
extern "C" int cwc_convolve(const uint8_t* images, uint8_t* out, const int64_t* labels, const float* bank, const int32_t* sums,
                                  const int32_t* rows, const int32_t* cols, const int64_t* shape, int by_max, int threads) {
  const Shape s{shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shape[6], shape[7]};
  const int64_t wide = (s.W + BLOCK - 1) / BLOCK * BLOCK, pitch = wide + K - 1 + LANES;
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> plane(size_t(s.H + K - 1) * pitch, 0.f), z(size_t(s.C) * s.H * wide);
#pragma omp for schedule(static)
    for (int64_t n = 0; n < s.N; ++n) {
      const float* w = bank + labels[n] * K * K;
      float top = 0.f;
      for (int64_t c = 0; c < s.C; ++c) {
        float* zc = z.data() + c * s.H * wide;
        pad_plane(images + n * s.n_stride + c * s.c_stride, s, rows, cols, plane.data(), pitch);
        convolve_plane(plane.data(), pitch, w, zc, wide, s.H, s.W);
        if (by_max) top = std::max(top, plane_max(zc, wide, s.H, s.W));
        else rescale_plane(zc, wide, out + n * s.n_stride + c * s.c_stride, s, 2u, uint32_t(sums[labels[n]]), 2u * uint32_t(sums[labels[n]]));
      }
      if (!by_max) continue;
      const uint32_t m = uint32_t(std::max(top, 1.f));  // an all-black image stays black
      for (int64_t c = 0; c < s.C; ++c)
        rescale_plane(z.data() + c * s.H * wide, wide, out + n * s.n_stride + c * s.c_stride, s, 510u, m, 2u * m);
    }
  }
  return 0;
}
