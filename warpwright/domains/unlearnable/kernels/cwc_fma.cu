// Class-wise depthwise convolution of uint8 images with fused 8-bit rescaling (CWC; definition: operator.py), for NVIDIA GPUs.
//
// One thread marches down a strip of COLS columns of one channel plane. The k output rows that an input row touches are in flight
// in registers, as are the k*k weights, so every pixel is loaded and converted once (plus k-1 columns of halo a strip).
// Weights are integers, so float32 sums are exact in any order: bit-equal to int64.
//   scale "sum"  one pass. z + 1/4 is exact below 2^22; one FMA by 1/S onto 1.5 * 2^23 then rounds half up to the integer,
//                exactly while S <= 16384 (the nudge 1/(4S) beats the error 255 * 2^-25 of 1/S); larger S takes the remainder path.
//   scale "max"  two passes: the maximum of z per image, then the same sums again with the remainder path.
// What cwc_mma.cu cannot take runs here: k above 9, odd widths, large sums (gpu.py chooses).
// K, COLS: declared by the build line. Measured speed: docs/unlearnable.md.
#include <cstdint>
#include <cuda_runtime.h>

#ifndef COLS
#define COLS (K <= 5 ? 16 : 4)
#endif
static constexpr float MAGIC = 12582912.f;  // 1.5 * 2^23: adding it leaves the integer in the low mantissa bits

struct Problem { int N, C, H, W, pad, strips; };  // pad: 0 zero, 1 reflect, 2 circular; strips = ceil(W / COLS)
enum Pass { SUM, FIND_MAX, BY_MAX };

// Source index of padded position p, or -1 for a zero (operator.border).
__device__ __forceinline__ int source(int p, int size, int pad) {
  if (p >= 0 && p < size) return p;
  if (pad == 0) return -1;
  if (pad == 2) { p %= size; return p < 0 ? p + size : p; }
  const int period = size > 1 ? 2 * (size - 1) : 1;
  p %= period; if (p < 0) p += period;
  return size > 1 ? min(p, period - p) : 0;
}

template <bool ALIGNED>
__device__ __forceinline__ void load_row(const uint8_t* row, int x0, int W, const int (&halo)[K > 1 ? K - 1 : 1], float (&in)[COLS + K - 1]) {
  constexpr int LEFT = K / 2;
  if (row == nullptr) {
#pragma unroll
    for (int i = 0; i < COLS + K - 1; ++i) in[i] = 0.f;
    return;
  }
  if (ALIGNED) {
    uint32_t words[COLS / 4];
    if (COLS % 16 == 0) {
#pragma unroll
      for (int i = 0; i < COLS / 16; ++i) reinterpret_cast<uint4*>(words)[i] = __ldg(reinterpret_cast<const uint4*>(row + x0) + i);
    } else {
#pragma unroll
      for (int i = 0; i < COLS / 4; ++i) words[i] = __ldg(reinterpret_cast<const uint32_t*>(row + x0) + i);
    }
#pragma unroll
    for (int i = 0; i < COLS; ++i) in[LEFT + i] = float((words[i / 4] >> (8 * (i % 4))) & 255u);
  } else {
#pragma unroll
    for (int i = 0; i < COLS; ++i) in[LEFT + i] = x0 + i < W ? float(__ldg(row + x0 + i)) : 0.f;
  }
#pragma unroll
  for (int i = 0; i < K - 1; ++i) in[i < LEFT ? i : i + COLS] = halo[i] < 0 ? 0.f : float(__ldg(row + halo[i]));
}

// floor((a*z + b) / d): the float quotient is off by at most one, the remainder modulo 2^32 mends it.
__device__ __forceinline__ uint32_t divide(float z, uint32_t a, uint32_t b, uint32_t d, float inverse, float offset) {
  int q = int(z * inverse + offset);
  const int rest = int(a * uint32_t(int(z)) + b - d * uint32_t(q));
  return uint32_t(q + (rest >= int(d)) - (rest < 0));
}

template <bool ALIGNED>
__device__ __forceinline__ void store_row(uint8_t* row, int x0, int W, const uint32_t (&q)[COLS]) {
  if (ALIGNED) {
    uint32_t words[COLS / 4];
#pragma unroll
    for (int i = 0; i < COLS / 4; ++i) {
      const uint32_t low = __byte_perm(q[4 * i], q[4 * i + 1], 0x0040), high = __byte_perm(q[4 * i + 2], q[4 * i + 3], 0x0040);
      words[i] = __byte_perm(low, high, 0x5410);
    }
#pragma unroll
    for (int i = 0; i < COLS / 16; ++i) reinterpret_cast<uint4*>(row + x0)[i] = reinterpret_cast<uint4*>(words)[i];
    if (COLS % 16) {
#pragma unroll
      for (int i = 0; i < COLS / 4; ++i) reinterpret_cast<uint32_t*>(row + x0)[i] = words[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < COLS; ++i) if (x0 + i < W) row[x0 + i] = uint8_t(q[i]);
  }
}

template <Pass PASS, bool ALIGNED>
__global__ void __launch_bounds__(128) cwc_fma(const uint8_t* __restrict__ images, uint8_t* __restrict__ out, const int64_t* __restrict__ labels,
                                                 const float* __restrict__ bank, const int* __restrict__ sums, int* __restrict__ tops, Problem p) {
  constexpr int LEFT = K / 2;
  const int64_t id = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t plane_id = id / p.strips;
  if (plane_id >= int64_t(p.N) * p.C) return;
  const int x0 = int(id % p.strips) * COLS, n = int(plane_id / p.C);
  const int64_t label = labels[n];
  const uint8_t* plane = images + plane_id * p.H * p.W;
  uint8_t* target = out + plane_id * p.H * p.W;

  float w[K * K];
#pragma unroll
  for (int i = 0; i < K * K; ++i) w[i] = __ldg(bank + label * K * K + i);
  int halo[K > 1 ? K - 1 : 1];
#pragma unroll
  for (int i = 0; i < K - 1; ++i) halo[i] = source(i < LEFT ? x0 - LEFT + i : x0 + COLS - LEFT + i, p.W, p.pad);
  if (!ALIGNED) {  // a last, partial strip: its right halo lies inside `in`'s own columns
#pragma unroll
    for (int i = 0; i < K - 1; ++i) if (i >= LEFT && x0 + COLS > p.W) halo[i] = -1;
  }

  const int S = sums[label];
  const bool nudged = PASS == SUM && S <= 16384;
  const int m = PASS == BY_MAX ? max(tops[n], 1) : 0;
  const uint32_t a = PASS == SUM ? 2u : 510u, b = PASS == SUM ? uint32_t(S) : uint32_t(m), d = 2u * b;
  const float inverse = float(a) / float(max(d, 1u)), offset = float(b) / float(max(d, 1u)), start = nudged ? 0.25f : 0.f;

  float acc[K][COLS];  // acc[j]: the output row that is j rows below the oldest one in flight, rotated by the unrolled loop
#pragma unroll
  for (int j = 0; j < K; ++j)
#pragma unroll
    for (int i = 0; i < COLS; ++i) acc[j][i] = start;
  float top = 0.f;

  for (int base = 0; base < p.H + K - 1; base += K) {
#pragma unroll
    for (int phase = 0; phase < K; ++phase) {
      const int line = base + phase;  // padded input row; completes output row line - (K-1)
      if (line < p.H + K - 1) {
        float in[COLS + K - 1];
        const int y = source(line - LEFT, p.H, p.pad);
        load_row<ALIGNED>(y < 0 ? nullptr : plane + int64_t(y) * p.W, x0, p.W, halo, in);
        if (!ALIGNED && x0 + COLS > p.W) {  // partial strip: columns past the image follow the padding rule
#pragma unroll
          for (int i = 0; i < COLS + K - 1; ++i) {
            const int at = x0 - LEFT + i;
            if (at >= p.W) { const int s = source(at, p.W, p.pad); in[i] = y < 0 || s < 0 ? 0.f : float(__ldg(plane + int64_t(y) * p.W + s)); }
          }
        }
        // input row `line` is tap row t of output row line - t, which lives in slot (line - t) mod K
#pragma unroll
        for (int t = 0; t < K; ++t) {
          constexpr int M = 4 * K;
          float(&row)[COLS] = acc[(phase - t + M) % K];
#pragma unroll
          for (int j = 0; j < K; ++j)
#pragma unroll
            for (int i = 0; i < COLS; ++i) row[i] = fmaf(w[t * K + j], in[i + j], row[i]);
        }
        const int done = line - (K - 1);
        float(&row)[COLS] = acc[(phase + 1) % K];
        if (done >= 0) {
          uint32_t q[COLS];
#pragma unroll
          for (int i = 0; i < COLS; ++i) {
            if (PASS == FIND_MAX) { if (x0 + i < p.W) top = fmaxf(top, row[i]); }
            else if (nudged) q[i] = __float_as_uint(fmaf(row[i], 1.f / float(S), MAGIC));
            else q[i] = divide(row[i], a, b, d, inverse, offset);
          }
          if (PASS != FIND_MAX) store_row<ALIGNED>(target + int64_t(done) * p.W, x0, p.W, q);
        }
#pragma unroll
        for (int i = 0; i < COLS; ++i) row[i] = start;
      }
    }
  }
  if (PASS == FIND_MAX) atomicMax(tops + n, int(top));
}

template <Pass PASS>
static void launch(const uint8_t* x, uint8_t* y, const int64_t* labels, const float* bank, const int* sums, int* tops, Problem p, cudaStream_t stream) {
  const int64_t threads = int64_t(p.N) * p.C * p.strips;
  const unsigned blocks = unsigned((threads + 127) / 128);
  const bool aligned = p.W % COLS == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % (COLS % 16 ? 4 : 16) == 0;
  if (aligned) cwc_fma<PASS, true><<<blocks, 128, 0, stream>>>(x, y, labels, bank, sums, tops, p);
  else cwc_fma<PASS, false><<<blocks, 128, 0, stream>>>(x, y, labels, bank, sums, tops, p);
}

// Device pointers: images, out [N, C, H, W] uint8 contiguous; labels [N] int64; bank [classes, K, K] float32 and sums [classes] int32 in units of
// 1/4096; tops [N] int32, zeroed, used by scale "max" only. Returns cudaGetLastError().
extern "C" int cwc_fma_cuda(const void* images, void* out, const void* labels, const void* bank, const void* sums, void* tops, int N, int C,
                                       int H, int W, int pad, int by_max, void* stream) {
  const Problem p{N, C, H, W, pad, (W + COLS - 1) / COLS};
  if (N * C == 0) return 0;
  auto x = static_cast<const uint8_t*>(images);
  auto y = static_cast<uint8_t*>(out);
  auto l = static_cast<const int64_t*>(labels);
  auto b = static_cast<const float*>(bank);
  auto s = static_cast<const int*>(sums);
  auto t = static_cast<int*>(tops);
  auto q = static_cast<cudaStream_t>(stream);
  if (by_max) { launch<FIND_MAX>(x, y, l, b, s, t, p, q); launch<BY_MAX>(x, y, l, b, s, t, p, q); }
  else launch<SUM>(x, y, l, b, s, t, p, q);
  return int(cudaGetLastError());
}
