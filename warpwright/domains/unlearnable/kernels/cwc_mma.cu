// Class-wise convolution of uint8 images with fused 8-bit rescaling on the tensor cores of NVIDIA GPUs (definition: operator.py).
//
// Each filter row is a banded Toeplitz matrix: 8 outputs in a row need 16 input bytes from 4 columns to their left, which is one k16 step of
// mma.m16n8k16 (u8 x u8 -> s32, exact). M = 16 output positions of one channel plane, N = 8 columns, K = 16 bytes x k filter rows. A weight is two
// bytes, low and high, with a product each. A warp marches down its 16 positions: an A fragment is one aligned 32-bit load of one
// input row and serves k output rows from registers, so no pixel is ever unpacked and no shared memory is needed.
//   scale "sum"  one pass.
//   scale "max"  two passes by the same block: the second finds the image in L1 (32x32) or L2 (224x224), so memory is read once.
// Rescaling: sums start at the bits of MAGIC, so their bits are the float MAGIC + z (z < 2^22: filter sums up to 16384), with no conversion.
// Conditions (toeplitz.fits): k <= 9, W a multiple of 8, H and W of at least 8, filter sums <= 16384. All else: cwc_fma.cu.
// K, ROWS (output rows a step), WARPS (most warps a block), BLOCKS (least blocks an SM) come from the build line, and so may HEIGHT, WIDTH and PAD.
#include <cstdint>
#include <cuda_runtime.h>

#ifndef ROWS
#ifdef HEIGHT
#define ROWS 8
#else
#define ROWS 4
#endif
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef BLOCKS
#define BLOCKS (K <= 3 ? 3 : 2)
#endif
#if defined(HEIGHT) && HEIGHT % (ROWS) == 0
#define ONE_STEP 1  // segments of ROWS rows: no loop and nothing to hand on, for (K - 1) / ROWS more loads from L1
#else
#define ONE_STEP 0
#endif
#define LEFT (K / 2)
#define RIGHT (K - 1 - K / 2)
#define FULL 0xffffffffu
#define MAGIC 12582912.f  // 1.5 * 2^23: in [2^23, 2^24) the low mantissa bits are the integer
#define MAGIC_BITS 0x4B400000

// pad: 0 zero, 1 reflect, 2 circular. tiles = W / 8; a plane has tiles * segments positions, each of 8 columns and `height` rows (segments * height
// = H); 16 positions are a group. A unit is `planes` planes of one image, for across * deep warps.
struct Shape { int N, C, H, W, pad, tiles, segments, height, groups, planes, across, deep; };
enum Pass { SUM, FIND_MAX, BY_MAX };

// The number of segments, a divisor of H, that costs a plane the fewest rows: whole groups, whole steps and halo rows counted.
__host__ __device__ constexpr int best_segments(int H, int tiles) {
  if (ONE_STEP) return H / ROWS;
  int best = 1, least = 2147483647;
  for (int segments = 1; segments <= H / ROWS; ++segments) {
    if (H % segments) continue;
    const int steps = (H / segments + ROWS - 1) / ROWS, cost = (tiles * segments + 15) / 16 * (steps * ROWS + K - 1);
    if (cost < least) { least = cost; best = segments; }
  }
  return best;
}

__host__ __device__ constexpr Shape layout(int N, int C, int H, int W, int pad, int planes, int across, int deep) {
  const int segments = best_segments(H, W / 8);
  return Shape{N, C, H, W, pad, W / 8, segments, H / segments, (W / 8 * segments + 15) / 16, planes, across, deep};
}

// One lane's part of a position. It reads the word at `source` of each row, and where that row's end is near also the one `other` bytes on (0: none);
// `selector` picks the padded row's bytes from the two. It writes two bytes at `target`. Offsets are from the plane's first byte.
struct Place { int source, target, other; uint32_t selector; bool top, bottom; };

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

// Lane quarter t of position `index`: bytes 8 * tile - 4 + 4t to + 3 of padded rows.
__device__ __forceinline__ Place place(int index, int t, const Shape& s) {
  const int bounded = min(index, s.tiles * s.segments - 1);  // spare positions repeat the last one: the same bytes, written twice
  const int segment = bounded / s.tiles, tile = bounded % s.tiles, first = segment * s.height * s.W, at = 8 * tile - 4 + 4 * t;
  Place p{first + at, first + 8 * tile + 2 * t, 0, 0x3210u, segment == 0, segment == s.segments - 1};
  if (at < 0 || at >= s.W) {
    const bool left = at < 0;
    if (s.pad == 2) p.source = first + (left ? s.W - 4 : 0);
    else {
      p.source = first + (left ? 0 : s.W - 4);
      if (s.pad == 0) p.selector = 0x4444u;
      else { p.other = left ? 4 : -4; p.selector = left ? 0x1234u : 0x7012u; }  // pixels 4 3 2 1, or W-2 W-3 W-4 W-5
    }
  }
  return p;
}

__device__ __forceinline__ uint32_t word(const uint8_t* at, const Place& p) {
  const uint32_t near = __ldg(reinterpret_cast<const uint32_t*>(at));
  uint32_t far = 0u;
  if (LEFT > 3 && p.other) far = __ldg(reinterpret_cast<const uint32_t*>(at + p.other));  // up to 3 border pixels lie in one word
  return __byte_perm(near, far, p.selector);
}

// Row i of a segment that starts at `segment`; i, the same in all lanes, may lie above or below it.
__device__ __forceinline__ uint32_t border_word(const uint8_t* segment, int i, const Place& p, const Shape& s) {
  const bool outside = i < 0 ? p.top : i >= s.height && p.bottom;
  const int mirrored = i < 0 ? -i : 2 * (s.height - 1) - i, around = i < 0 ? i + s.H : i - s.H;
  if (outside && s.pad == 0) return 0u;
  return word(segment + (outside ? (s.pad == 1 ? mirrored : around) : i) * s.W, p);
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

// Add filter rows j and j + 1, as far as there are such, times input rows to output row r of 16 positions.
__device__ __forceinline__ void multiply(int (&z)[4], const uint32_t (&a)[ROWS + K - 1][2], int r, int j, const uint32_t (&band)[K]) {
  if (j < 0) mma16(z, a[r][0], a[r][1], band[0]);
  else if (j + 1 >= K) mma16(z, a[r + j][0], a[r + j][1], band[j]);
  else mma32(z, a[r + j][0], a[r + j][1], a[r + j + 1][0], a[r + j + 1][1], band[j], band[j + 1]);
}

// ROWS output rows. The high bytes go first, then z * 256 + MAGIC is what the low bytes are added to. Input rows are taken in pairs that begin at even
// rows, also for odd output rows: an instruction wants its four words in aligned registers, and other pairs would cost copies.
__device__ __forceinline__ void convolve(int (&z)[ROWS][4], const uint32_t (&a)[ROWS + K - 1][2], const uint32_t (&low)[K], const uint32_t (&high)[K],
                                         uint32_t high_rows) {
#pragma unroll
  for (int odd = 0; odd < 2; ++odd) {
#pragma unroll
    for (int r = odd; r < ROWS; r += 2)
#pragma unroll
      for (int i = 0; i < 4; ++i) z[r][i] = 0;
#pragma unroll
    for (int j = -odd; j < K; j += 2)
      if (K < 5 || (high_rows << 1 >> (j + 1) & 3u)) {  // at k = 9 the tap alone has a high byte: one of five products
#pragma unroll
        for (int r = odd; r < ROWS; r += 2) multiply(z[r], a, r, j, high);
      }
#pragma unroll
    for (int r = odd; r < ROWS; r += 2) {
#pragma unroll
      for (int i = 0; i < 4; ++i) z[r][i] = z[r][i] * 256 + MAGIC_BITS;
#pragma unroll
      for (int j = -odd; j < K; j += 2) multiply(z[r], a, r, j, low);
    }
  }
}

// One march of a warp down 16 positions of a plane; returns the greatest sum of this thread's pixels (FIND_MAX), else 0.
template <int PASS>
__device__ __forceinline__ int march(const uint8_t* plane, uint8_t* out, const Place& upper, const Place& lower, const uint32_t (&low)[K],
                                     const uint32_t (&high)[K], uint32_t high_rows, float inverse, int m, const Shape& s) {
  const uint8_t *x0 = plane + upper.source, *x1 = plane + lower.source;
  uint32_t a[ROWS + K - 1][2], next[ROWS][2];
  int top = 0;
#pragma unroll
  for (int r = 0; r < ROWS + K - 1; ++r) {
    const int i = r - LEFT;
    const bool inside = i >= 0 && i < ROWS;  // height >= ROWS
    a[r][0] = inside ? word(x0 + i * s.W, upper) : border_word(x0, i, upper, s);
    a[r][1] = inside ? word(x1 + i * s.W, lower) : border_word(x1, i, lower, s);
  }
  for (int y = 0; y < s.height; y += ROWS) {
    const bool more = y + ROWS < s.height;
    const int ahead = y + ROWS + RIGHT;
    if (ahead + ROWS <= s.height) {  // on their way while this step's products run
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        next[r][0] = word(x0 + (ahead + r) * s.W, upper);
        next[r][1] = word(x1 + (ahead + r) * s.W, lower);
      }
    } else if (more) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const int i = min(ahead + r, s.height + RIGHT - 1);  // rows below serve no output
        next[r][0] = border_word(x0, i, upper, s);
        next[r][1] = border_word(x1, i, lower, s);
      }
    }
    int z[ROWS][4];
    convolve(z, a, low, high, high_rows);
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      if (y + r < s.height) {
        if (PASS == FIND_MAX) top = max(max(top, max(z[r][0], z[r][1])), max(z[r][2], z[r][3]));
        else {
          uint32_t q[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) q[i] = rescale<PASS>(z[r][i], inverse, m);
          *reinterpret_cast<uint16_t*>(out + (upper.target + (y + r) * s.W)) = uint16_t(__byte_perm(q[0], q[1], 0x0040));
          *reinterpret_cast<uint16_t*>(out + (lower.target + (y + r) * s.W)) = uint16_t(__byte_perm(q[2], q[3], 0x0040));
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

// A warp's share of a unit: every across-th group of every deep-th plane.
template <int PASS>
__device__ __forceinline__ int march_all(const uint8_t* images, uint8_t* out, int warp, const uint32_t (&low)[K], const uint32_t (&high)[K],
                                         uint32_t high_rows, float inverse, int m, const Shape& s) {
  const int quarter = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  int top = 0;
  for (int group = warp % s.across; group < s.groups; group += s.across) {
    const Place upper = place(16 * group + quarter, t, s), lower = place(16 * group + quarter + 8, t, s);
    for (int plane = warp / s.across; plane < s.planes; plane += s.deep)
      top = max(top, march<PASS>(images + plane * s.H * s.W, out + plane * s.H * s.W, upper, lower, low, high, high_rows, inverse, m, s));
  }
  return top;
}

// bands: [classes][K][2][32] words: for each class, filter row and byte (low, high) of the weights, the B fragment of each lane.
template <bool BY_MAXIMUM>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS) cwc_mma(const uint8_t* __restrict__ images, uint8_t* __restrict__ out,
                                                                    const int64_t* __restrict__ labels, const uint32_t* __restrict__ bands,
                                                                    const int* __restrict__ sums, const Shape given) {
#ifdef HEIGHT  // one image size: what does not depend on the lane is a constant, and marches of one step have no loop
  constexpr Shape fixed = layout(0, 0, HEIGHT, WIDTH, PAD, 0, 0, 0);
  const Shape s{given.N, given.C, HEIGHT, WIDTH, PAD, fixed.tiles, fixed.segments, fixed.height, fixed.groups, given.planes, given.across, given.deep};
#else
  const Shape s = given;
#endif
  __shared__ int block_top;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, share = s.C / s.planes;
  const bool alone = s.across * s.deep == 1;  // a warp to a unit, several units to a block
  const int64_t unit = alone ? int64_t(blockIdx.x) * (blockDim.x / 32) + warp : int64_t(blockIdx.x);
  if (unit >= int64_t(s.N) * share) return;  // whole warps, and only of a block without barriers
  const int n = int(unit / share);
  const int64_t offset = (int64_t(n) * s.C + int(unit % share) * s.planes) * s.H * s.W, label = labels[n];
  const uint8_t* x = images + offset;
  uint8_t* y = out + offset;
  uint32_t low[K], high[K], high_rows = 0;
#pragma unroll
  for (int j = 0; j < K; ++j) {
    low[j] = __ldg(bands + ((label * K + j) * 2) * 32 + lane);
    high[j] = __ldg(bands + ((label * K + j) * 2 + 1) * 32 + lane);
  }
  if (K >= 5) {
#pragma unroll
    for (int j = 0; j < K; ++j)
      if (__any_sync(FULL, high[j] != 0u)) high_rows |= 1u << j;
  }
  const int part = alone ? 0 : warp;
  if (!BY_MAXIMUM) march_all<SUM>(x, y, part, low, high, high_rows, inverse_above(max(sums[label], 1)), 0, s);
  else {
    int top = max(march_all<FIND_MAX>(x, y, part, low, high, high_rows, 0.f, 0, s) - MAGIC_BITS, 1);  // a black image stays black
    for (int step = 16; step > 0; step /= 2) top = max(top, __shfl_xor_sync(FULL, top, step));
    if (!alone) {
      if (threadIdx.x == 0) block_top = 1;
      __syncthreads();
      if (lane == 0) atomicMax(&block_top, top);
      __syncthreads();
      top = block_top;
    }
    march_all<BY_MAX>(x, y, part, low, high, high_rows, inverse_below(top), top, s);
  }
}

// Warps that share a plane's groups: at most WARPS, and without idle ones if that takes no more than half of them away.
static int even_share(int groups) {
  for (int warps = WARPS; warps > WARPS / 2; --warps)
    if (groups % warps == 0) return warps;
  return groups < WARPS ? groups : WARPS;
}

// Device pointers: images, out [N, C, H, W] uint8 contiguous, 4-byte aligned; labels [N] int64; bands [classes, K, 2, 32] uint32; sums [classes]
// int32 in units of 1/4096. Returns cudaGetLastError().
extern "C" int cwc_mma_cuda(const void* images, void* out, const void* labels, const void* bands, const void* sums, int N, int C, int H, int W,
                                  int pad, int by_max, void* stream) {
  if (N * C == 0) return 0;
#ifdef HEIGHT
  if (H != HEIGHT || W != WIDTH || pad != PAD) return int(cudaErrorInvalidValue);
#endif
  const Shape one = layout(N, C, H, W, pad, 0, 0, 0);
  const int planes = by_max || one.groups == 1 ? C : 1, across = even_share(one.groups);
  const int most = one.groups == 1 ? 1 : WARPS / across, deep = planes < most ? planes : most;
  const Shape s = layout(N, C, H, W, pad, planes, across, deep);
  const int64_t units = int64_t(N) * (C / planes);
  const int warps = across * deep > 1 ? across * deep : WARPS < 4 ? WARPS : 4;
  const unsigned blocks = unsigned(across * deep > 1 ? units : (units + warps - 1) / warps);
  auto x = static_cast<const uint8_t*>(images);
  auto y = static_cast<uint8_t*>(out);
  auto l = static_cast<const int64_t*>(labels);
  auto b = static_cast<const uint32_t*>(bands);
  auto t = static_cast<const int*>(sums);
  auto q = static_cast<cudaStream_t>(stream);
  if (by_max) cwc_mma<true><<<blocks, 32 * warps, 0, q>>>(x, y, l, b, t, s);
  else cwc_mma<false><<<blocks, 32 * warps, 0, q>>>(x, y, l, b, t, s);
  return int(cudaGetLastError());
}
