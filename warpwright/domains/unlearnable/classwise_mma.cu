// Class-wise convolution of uint8 images with fused 8-bit rescaling on the tensor cores of NVIDIA GPUs (definition: operator.py).
//
// Each filter row is a banded Toeplitz matrix: 8 outputs in a row need 16 input bytes from 4 columns to their left, which is one k16 step of
// mma.m16n8k16 (u8 x u8 -> s32, exact). M = 16 output positions of one channel plane, N = 8 columns, K = 16 bytes x k filter rows. A weight is two
// bytes, low and high, with a product each. A warp marches down its 16 positions: an A fragment is one aligned 32-bit load of one
// input row and serves k output rows from registers, so no pixel is ever unpacked and no shared memory is needed.
//   scale "sum"  one pass.
//   scale "max"  two passes by the same block: the second finds the image in L1 (32x32) or L2 (224x224), so memory is read once.
// Rescaling: sums start at the bits of MAGIC, so their bits are the float MAGIC + z (z < 2^22: filter sums up to 16384), with no conversion.
// Conditions (toeplitz.fits): k <= 9, W a multiple of 8, H and W of at least 8, filter sums <= 16384. All else: classwise.cu.
// K, ROWS (output rows a step), WARPS (most warps a block), BLOCKS (least blocks an SM) come from the build line.
#include <cstdint>
#include <cuda_runtime.h>

#ifndef ROWS
#define ROWS (K <= 3 ? 8 : 4)
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef BLOCKS
#define BLOCKS (K <= 3 ? 3 : 2)
#endif
#define LEFT (K / 2)
#define RIGHT (K - 1 - K / 2)
#define FULL 0xffffffffu
#define MAGIC 12582912.f  // 1.5 * 2^23: in [2^23, 2^24) the low mantissa bits are the integer
#define MAGIC_BITS 0x4B400000

// pad: 0 zero, 1 reflect, 2 circular. tiles = W / 8; a plane has tiles * segments positions, each of 8 columns and `height` rows; 16 positions are
// a group. A unit is `planes` planes of one image for `team` warps.
struct Shape { int N, C, H, W, pad, tiles, segments, height, groups, planes, team; };
enum Pass { SUM, FIND_MAX, BY_MAX };

// One word of a padded row: bytes of the words at `column` and `other` (-1: zeros), as `selector` picks them.
struct Place { int column, other, y; uint32_t selector, target; };

#ifdef TENSOR_CORES
__device__ __forceinline__ void mma16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b0) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(b0));
}
__device__ __forceinline__ void mma32(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#else  // the same product by lane exchange: what runs on the CPU
__device__ __forceinline__ int dot(uint32_t a, uint32_t b) {
  int sum = 0;
  for (int i = 0; i < 32; i += 8) sum += int((a >> i) & 255u) * int((b >> i) & 255u);
  return sum;
}
__device__ __forceinline__ void mma16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b0) {
  const int lane = threadIdx.x % 32, row = lane & ~3, column = 8 * (lane % 4);
  for (int i = 0; i < 4; ++i) {
    const uint32_t upper = __shfl_sync(FULL, a0, row + i), lower = __shfl_sync(FULL, a1, row + i);
    const uint32_t even = __shfl_sync(FULL, b0, column + i), odd = __shfl_sync(FULL, b0, column + 4 + i);
    c[0] += dot(upper, even); c[1] += dot(upper, odd); c[2] += dot(lower, even); c[3] += dot(lower, odd);
  }
}
__device__ __forceinline__ void mma32(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  mma16(c, a0, a1, b0);
  mma16(c, a2, a3, b1);
}
#endif

// Where lane quarter t of position `index` reads (bytes 8 * tile - 4 + 4t to + 3 of a padded row) and writes.
__device__ __forceinline__ Place place(int index, int t, const Shape& s) {
  const int bounded = min(index, s.tiles * s.segments - 1);  // spare positions repeat the last one: the same bytes, written twice
  const int segment = bounded / s.tiles, tile = bounded % s.tiles, at = 8 * tile - 4 + 4 * t;
  Place p{at, -1, segment * s.height, 0x3210u, uint32_t(8 * tile + 2 * t)};
  if (at < 0 || at >= s.W) {
    const bool left = at < 0;
    if (s.pad == 2) p.column = left ? s.W - 4 : 0;
    else {
      p.column = left ? 0 : s.W - 4;
      if (s.pad == 0) p.selector = 0x4444u;
      else { p.other = left ? 4 : s.W - 8; p.selector = left ? 0x1234u : 0x7012u; }  // pixels 4 3 2 1, or W-2 W-3 W-4 W-5
    }
  }
  return p;
}

// Source row of padded row y, or -1 for zeros; rows that no stored output needs are bounded only.
__device__ __forceinline__ int source(int y, const Shape& s) {
  if (unsigned(y) < unsigned(s.H)) return y;
  if (s.pad == 0) return -1;
  if (s.pad == 1) y = y < 0 ? -y : 2 * (s.H - 1) - y;
  else y = y < 0 ? y + s.H : y - s.H;
  return min(max(y, 0), s.H - 1);
}

__device__ __forceinline__ uint32_t load(const uint8_t* plane, int y, const Place& p, const Shape& s) {
  const int row = source(y, s);
  if (row < 0) return 0u;
  const uint8_t* line = plane + row * s.W;
  const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(line + p.column));
  uint32_t second = 0u;
  if (LEFT > 3 && p.other >= 0) second = __ldg(reinterpret_cast<const uint32_t*>(line + p.other));  // up to 3 border pixels lie in one word
  return __byte_perm(word, second, p.selector);
}

// The smallest float above 1/S: ties then round up, and 255 * 2^-23 is less than the 1/(2S) to the next value below a tie.
__device__ __forceinline__ float inverse_above(int S) {
  const float r = 1.f / float(S);
  return fmaf(r, float(S), -1.f) > 0.f ? r : __uint_as_float(__float_as_uint(r) + 1u);
}

// The largest float that is at most 255/m: the quotient is then right or one too small.
__device__ __forceinline__ float inverse_below(int m) {
  const float r = 255.f / float(m);
  return fmaf(r, float(m), -255.f) > 0.f ? __uint_as_float(__float_as_uint(r) - 1u) : r;
}

// bits: of MAGIC + z. Returns a word whose low byte is the rescaled pixel.
template <int PASS>
__device__ __forceinline__ uint32_t rescale(int bits, float inverse, int m) {
  const float z = __uint_as_float(uint32_t(bits)) - MAGIC;
  const uint32_t q = __float_as_uint(fmaf(z, inverse, MAGIC));
  if (PASS == SUM) return q;
  const uint32_t rest = 510u * (uint32_t(bits) - MAGIC_BITS) - uint32_t(m) - 2u * uint32_t(m) * (q - MAGIC_BITS);  // negative: q is right
  return q + 1u - (rest >> 31);
}

// Output row r of 16 positions from input rows a[r] to a[r + K - 1] and one byte of the weights.
__device__ __forceinline__ void multiply(int (&z)[4], const uint32_t (&a)[ROWS + K - 1][2], int r, int j, const uint32_t (&band)[K]) {
  if (j + 1 < K) mma32(z, a[r + j][0], a[r + j][1], a[r + j + 1][0], a[r + j + 1][1], band[j], band[j + 1 < K ? j + 1 : j]);
  else mma16(z, a[r + j][0], a[r + j][1], band[j]);
}

// ROWS output rows. The high bytes go first, then z * 256 + MAGIC is what the low bytes are added to.
__device__ __forceinline__ void convolve(int (&z)[ROWS][4], const uint32_t (&a)[ROWS + K - 1][2], const uint32_t (&low)[K], const uint32_t (&high)[K],
                                         uint32_t high_pairs) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int i = 0; i < 4; ++i) z[r][i] = 0;
  if (K >= 5) {
#pragma unroll
    for (int j = 0; j < K; j += 2)
      if (high_pairs >> j & 1u) {  // at k = 9 the tap alone has a high byte: one of five products
#pragma unroll
        for (int r = 0; r < ROWS; ++r) multiply(z[r], a, r, j, high);
      }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (K < 5) {
#pragma unroll
      for (int j = 0; j < K; j += 2) multiply(z[r], a, r, j, high);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) z[r][i] = z[r][i] * 256 + MAGIC_BITS;
#pragma unroll
    for (int j = 0; j < K; j += 2) multiply(z[r], a, r, j, low);
  }
}

// One march of a warp down a group of 16 positions of a plane; returns the greatest sum of this thread's pixels (FIND_MAX), else 0.
template <int PASS>
__device__ __forceinline__ int march(const uint8_t* plane, uint8_t* target, int group, const uint32_t (&low)[K], const uint32_t (&high)[K],
                                     uint32_t high_pairs, float inverse, int m, const Shape& s) {
  const int lane = threadIdx.x % 32;
  const Place upper = place(16 * group + lane / 4, lane % 4, s), lower = place(16 * group + lane / 4 + 8, lane % 4, s);
  uint32_t a[ROWS + K - 1][2], next[ROWS][2];
  int top = 0;
#pragma unroll
  for (int r = 0; r < ROWS + K - 1; ++r) {
    a[r][0] = load(plane, upper.y - LEFT + r, upper, s);
    a[r][1] = load(plane, lower.y - LEFT + r, lower, s);
  }
  for (int y = 0; y < s.height; y += ROWS) {
    const bool more = y + ROWS < s.height;
    if (more) {  // on their way while this step's products run
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        next[r][0] = load(plane, upper.y + y + ROWS + RIGHT + r, upper, s);
        next[r][1] = load(plane, lower.y + y + ROWS + RIGHT + r, lower, s);
      }
    }
    int z[ROWS][4];
    convolve(z, a, low, high, high_pairs);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const bool first = upper.y + y + r < s.H, second = lower.y + y + r < s.H;
      if (PASS == FIND_MAX) {
        if (first) top = max(top, max(z[r][0], z[r][1]));
        if (second) top = max(top, max(z[r][2], z[r][3]));
      } else {
        uint32_t q[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) q[i] = rescale<PASS>(z[r][i], inverse, m);
        uint8_t* row = target + (y + r) * s.W;
        if (first) *reinterpret_cast<uint16_t*>(row + upper.y * s.W + upper.target) = uint16_t(__byte_perm(q[0], q[1], 0x0040));
        if (second) *reinterpret_cast<uint16_t*>(row + lower.y * s.W + lower.target) = uint16_t(__byte_perm(q[2], q[3], 0x0040));
      }
    }
    if (more) {
#pragma unroll
      for (int r = 0; r < K - 1; ++r) { a[r][0] = a[r + ROWS][0]; a[r][1] = a[r + ROWS][1]; }
#pragma unroll
      for (int r = 0; r < ROWS; ++r) { a[r + K - 1][0] = next[r][0]; a[r + K - 1][1] = next[r][1]; }
    }
  }
  return top;
}

// bands: [classes][K][2][32] words: for each class, filter row and byte (low, high) of the weights, the B fragment of each lane.
template <bool BY_MAXIMUM>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS) classwise_mma(const uint8_t* __restrict__ images, uint8_t* __restrict__ out,
                                                                    const int64_t* __restrict__ labels, const uint32_t* __restrict__ bands,
                                                                    const int* __restrict__ sums, const Shape s) {
  __shared__ int block_top;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, share = s.C / s.planes, items = s.planes * s.groups;
  const int64_t unit = s.team > 1 ? int64_t(blockIdx.x) : int64_t(blockIdx.x) * (blockDim.x / 32) + warp;
  const int first = s.team > 1 ? warp : 0;
  const bool mine = unit < int64_t(s.N) * share;  // a whole warp agrees
  const int n = mine ? int(unit / share) : 0;
  const int64_t plane = int64_t(s.H) * s.W, offset = (int64_t(n) * s.C + (mine ? int(unit % share) * s.planes : 0)) * plane;
  const int64_t label = labels[n];
  uint32_t low[K], high[K], high_pairs = 0;
#pragma unroll
  for (int j = 0; j < K; ++j) {
    low[j] = __ldg(bands + ((label * K + j) * 2) * 32 + lane);
    high[j] = __ldg(bands + ((label * K + j) * 2 + 1) * 32 + lane);
  }
  if (K >= 5) {
#pragma unroll
    for (int j = 0; j < K; j += 2)
      if (__any_sync(FULL, (high[j] | (j + 1 < K ? high[j + 1 < K ? j + 1 : j] : 0u)) != 0u)) high_pairs |= 1u << j;
  }
  if (!BY_MAXIMUM) {
    const float inverse = inverse_above(max(sums[label], 1));
    for (int item = first; mine && item < items; item += s.team)
      march<SUM>(images + offset + item / s.groups * plane, out + offset + item / s.groups * plane, item % s.groups, low, high, high_pairs, inverse, 0, s);
  } else {
    int top = 0;
    for (int item = first; mine && item < items; item += s.team)
      top = max(top, march<FIND_MAX>(images + offset + item / s.groups * plane, nullptr, item % s.groups, low, high, high_pairs, 0.f, 0, s));
    top = max(top - MAGIC_BITS, 1);  // a black image stays black
    for (int step = 16; step > 0; step /= 2) top = max(top, __shfl_xor_sync(FULL, top, step));
    if (s.team > 1) {
      if (threadIdx.x == 0) block_top = 1;
      __syncthreads();
      if (lane == 0) atomicMax(&block_top, top);
      __syncthreads();
      top = block_top;
    }
    const float inverse = inverse_below(top);
    for (int item = first; mine && item < items; item += s.team)
      march<BY_MAX>(images + offset + item / s.groups * plane, out + offset + item / s.groups * plane, item % s.groups, low, high, high_pairs, inverse, top, s);
  }
}

// The number of segments that costs a plane the fewest rows, whole groups and halo rows counted.
static int best_segments(int H, int tiles) {
  int best = 1;
  int64_t least = INT64_MAX;
  for (int wanted = 1; wanted <= 32 && (wanted - 1) * ROWS < H; ++wanted) {
    const int height = ((H + wanted - 1) / wanted + ROWS - 1) / ROWS * ROWS, segments = (H + height - 1) / height;
    const int64_t cost = int64_t((tiles * segments + 15) / 16) * (height + K - 1);
    if (cost < least) { least = cost; best = segments; }
  }
  return best;
}

// Device pointers: images, out [N, C, H, W] uint8 contiguous, 4-byte aligned; labels [N] int64; bands [classes, K, 2, 32] uint32; sums [classes]
// int32 in units of 1/4096. Returns cudaGetLastError().
extern "C" int classwise_mma_cuda(const void* images, void* out, const void* labels, const void* bands, const void* sums, int N, int C, int H, int W,
                                  int pad, int by_max, void* stream) {
  if (N * C == 0) return 0;
  const int tiles = W / 8, wanted = best_segments(H, tiles);
  const int height = ((H + wanted - 1) / wanted + ROWS - 1) / ROWS * ROWS, segments = (H + height - 1) / height, groups = (tiles * segments + 15) / 16;
  const int planes = by_max || groups == 1 ? C : 1, items = planes * groups, rounds = (items + WARPS - 1) / WARPS;
  const int team = groups == 1 ? 1 : (items + rounds - 1) / rounds;
  const Shape s{N, C, H, W, pad, tiles, segments, height, groups, planes, team};
  const int64_t units = int64_t(N) * (C / planes);
  const int threads = 32 * (team > 1 ? team : 4 < WARPS ? 4 : WARPS);
  const unsigned blocks = unsigned(team > 1 ? units : (units + threads / 32 - 1) / (threads / 32));
  auto x = static_cast<const uint8_t*>(images);
  auto y = static_cast<uint8_t*>(out);
  auto l = static_cast<const int64_t*>(labels);
  auto b = static_cast<const uint32_t*>(bands);
  auto t = static_cast<const int*>(sums);
  auto q = static_cast<cudaStream_t>(stream);
  if (by_max) classwise_mma<true><<<blocks, threads, 0, q>>>(x, y, l, b, t, s);
  else classwise_mma<false><<<blocks, threads, 0, q>>>(x, y, l, b, t, s);
  return int(cudaGetLastError());
}
