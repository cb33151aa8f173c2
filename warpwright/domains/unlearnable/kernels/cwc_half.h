// What cwc_half.cu and cwc_cluster.cu share: exact products in half precision, and the exact division by an image's maximum.
//
// A byte x with a zero byte above it is the subnormal half x * 2^-24, and a weight (an integer up to 4096) is a half, so a product of the tensor cores with
// sums in float32 is z * 2^-24, exact. K and TENSOR_CORES come from the build line; without TENSOR_CORES, on the CPU, products go through lane exchange.
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#define LEFT (K / 2)
#define CHANNELS 3
#define FULL 0xffffffffu
#define MAGIC 12582912.f  // 1.5 * 2^23: in [2^23, 2^24) the low mantissa bits are the integer
#define START .75f        // sums of scale "max" begin here: in [0.5, 1) the low mantissa bits count 2^-24, and z < 2^22
#define START_BITS 0x3F400000u

// floor(255 z / m + 1/2) for scale "max", by one double multiply-add: a sum's bits, START_BITS + z, with a zero word above them are a subnormal double,
// (START_BITS + z) * 2^-1074, and factor and offset make of it (2^20 + 255 z / m + 1/2 + 255/(2048m)) * 2^-64, whose upper word ends in the integer wanted.
// All errors together, those of the ratio 255 / m (2^-44 of it) too, are below 2^-31 + 2^-15 / m, and so below 1/(9m) as m < 2^22: a tie stays above its
// integer, and what is 1/(2m) below stays below.
struct Divisor { double factor, offset; };

#ifdef TENSOR_CORES
__device__ __forceinline__ void multiply(float (&z)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], float start, bool first) {
  const float c0 = first ? start : z[0], c1 = first ? start : z[1], c2 = first ? start : z[2], c3 = first ? start : z[3];
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(z[0]), "=f"(z[1]), "=f"(z[2]), "=f"(z[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c0), "f"(c1), "f"(c2), "f"(c3));
}
#else
__device__ __forceinline__ float half_value(uint32_t bits) {  // in units of 2^-24; positive
  const int exponent = int(bits >> 10), mantissa = int(bits & 1023u);
  return exponent ? float(mantissa + 1024) * float(1 << (exponent - 1)) : float(mantissa);
}
__device__ __forceinline__ float dot(uint32_t a, uint32_t b) {
  return half_value(a & 65535u) * half_value(b & 65535u) + half_value(a >> 16) * half_value(b >> 16);
}
__device__ __forceinline__ void multiply(float (&z)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], float start, bool first) {
  const int lane = threadIdx.x % 32, row = lane & ~3, column = 8 * (lane % 4);
  float sum[4] = {0.f, 0.f, 0.f, 0.f};
  for (int i = 0; i < 4; ++i)
    for (int half = 0; half < 2; ++half) {
      const uint32_t upper = __shfl_sync(FULL, a[2 * half], row + i), lower = __shfl_sync(FULL, a[2 * half + 1], row + i);
      const uint32_t even = __shfl_sync(FULL, b[half], column + i), odd = __shfl_sync(FULL, b[half], column + 4 + i);
      sum[0] += dot(upper, even); sum[1] += dot(upper, odd); sum[2] += dot(lower, even); sum[3] += dot(lower, odd);
    }
  for (int i = 0; i < 4; ++i) z[i] = (first ? start : z[i]) + sum[i] / 16777216.f / 16777216.f;
}
#endif

__device__ __forceinline__ int warp_max(int top) {
#ifdef TENSOR_CORES
  return __reduce_max_sync(FULL, top);
#else
  for (int step = 16; step > 0; step /= 2) top = max(top, __shfl_xor_sync(FULL, top, step));
  return top;
#endif
}

__device__ __forceinline__ Divisor divisor(uint32_t m) {
  const double whole = double(m), rough = double(1.f / float(m)), ratio = 255. * (rough * fma(-whole, rough, 2.));  // a division is slower: every image waits
  return Divisor{ratio * 0x1p1010, fma(-double(START_BITS), ratio, fma(ratio, 0x1p-11, 1048576.5)) * 0x1p-64};
}

// Two bytes of pixels of scale "max", from sums START + z * 2^-24.
__device__ __forceinline__ uint16_t divide(float z0, float z1, const Divisor& by) {
  const double q0 = fma(__hiloint2double(0, __float_as_int(z0)), by.factor, by.offset), q1 = fma(__hiloint2double(0, __float_as_int(z1)), by.factor, by.offset);
  return uint16_t(__byte_perm(uint32_t(__double2hiint(q0)), uint32_t(__double2hiint(q1)), 0x0040));
}
