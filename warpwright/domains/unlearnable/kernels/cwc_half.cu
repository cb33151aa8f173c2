// Class-wise convolution of uint8 colour images with small filters (k <= 3), which memory bounds, on NVIDIA GPUs (definition: operator.py).
//
// The products are those of cwc_mma.cu, banded Toeplitz matrices on the tensor cores, but in half precision: 618 to 681 instructions an image of 32x32
// and warp for scale "sum" (by count, in builds for sm_90a; cwc_mma.cu: about 1,050), since
// a byte x with a zero byte above it is the subnormal half x * 2^-24, so one byte permutation converts two pixels, places the border's pixels too, and a
// weight (an integer up to 4096 that a half holds exactly) needs one product in place of two. Sums are float32: z * 2^-24, exact.
// Planes come through a ring in shared memory by asynchronous copies, and so memory is busy while the tensor cores are. Each has a row more above and
// below, filled by the same copies, and so no address depends on the border.
//   ALONE 1  a warp takes whole images (32x32), with a ring of its own: no barriers.   ALONE 0: the block shares each plane.
//   scale "sum"  z * 1/S + MAGIC: one instruction rounds half up to an integer in the low bits.
//   scale "max"  KEEP 1: all sums of an image stay in registers. KEEP 0: the planes stay in the ring, and are multiplied twice.
//                Division by m is one double multiply-add: see Divisor (cwc_half.h).
// Conditions (toeplitz.suits_halves, gpu.py): k <= 3, three channels, sides in whole 32s, images 16-byte aligned. All else: cwc_mma.cu.
// K, HEIGHT, WIDTH, PAD (0 zero, 1 reflect, 2 circular), WARPS, BLOCKS (an SM), SLOTS (planes a ring), ALONE, KEEP, STAGED come from the build line.
#include "cwc_half.h"

constexpr int ACROSS = WIDTH / 32, GROUPS = ACROSS * (HEIGHT / 32);  // a group: 32 x 32 pixels, 4 x 4 positions of 8 columns and 8 rows
constexpr int PIXELS = HEIGHT * WIDTH, ROW_CHUNKS = WIDTH / 16, CHUNKS = PIXELS / 16;          // a chunk: 16 bytes, what one copy moves
constexpr int SKEW = WIDTH == 32 ? 32 : 48;  // bytes between segments of 8 rows: a load reads two segments, now in different banks
constexpr int ORIGIN = WIDTH + SKEW, PLANE = ORIGIN + (HEIGHT + 1) * WIDTH + HEIGHT / 8 * SKEW;
constexpr int SHARERS = ALONE ? 1 : WARPS, TEAM = 32 * SHARERS, ROUNDS = (GROUPS + SHARERS - 1) / SHARERS;  // warps and threads that share a ring
constexpr int STAGES = STAGED ? 2 : 0, TEAM_BYTES = SLOTS * PLANE + STAGES * PIXELS;
static_assert(K <= 3 && WIDTH % 32 == 0 && HEIGHT % 32 == 0 && SLOTS >= 3 && (!STAGED || ALONE));
constexpr int LOWER = 2 * (8 * WIDTH + SKEW), LOWER_OUT = 16 * WIDTH;  // from an upper position to the one two segments below
static_assert(!KEEP || GROUPS == SHARERS, "sums are kept by a warp with one group of each plane");
enum Pass { SUM, FIND_MAX, KEEP_SUMS, BY_MAX };

// Offset of row r, -1 to HEIGHT, from row 0.
__host__ __device__ constexpr int row_at(int r) { return r * WIDTH + (r < 0 ? -1 : r / 8) * SKEW; }

// One lane's part of two positions, upper and lower. It reads the word at `source` (+ LOWER) of each row in a slot; `even` and `odd` pick pixels 0 and 2,
// 1 and 3 of the padded row from it, as halves. It writes two bytes at `target` (+ LOWER_OUT) of each row of the output plane.
struct Place { int source, target; uint32_t even, odd; };

#ifdef TENSOR_CORES
__device__ __forceinline__ void copy_chunk(uint8_t* to, const uint8_t* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(to))), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING>
__device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }
#else  // what runs on the CPU: copies at once
__device__ __forceinline__ void copy_chunk(uint8_t* to, const uint8_t* from) {
  for (int i = 0; i < 4; ++i) reinterpret_cast<uint32_t*>(to)[i] = reinterpret_cast<const uint32_t*>(from)[i];
}
__device__ __forceinline__ void commit() {}
template <int PENDING>
__device__ __forceinline__ void wait() {}
#endif

__device__ __forceinline__ void meet() {  // the team, before one reads what others copied, or copies over what others read
  if (ALONE) __syncwarp();
  else __syncthreads();
}

// Copy a plane and its border rows into a slot.
__device__ __forceinline__ void fetch(uint8_t* slot, const uint8_t* plane, int rank) {
#pragma unroll
  for (int i = 0; i < (CHUNKS + TEAM - 1) / TEAM; ++i) {
    const int chunk = rank + i * TEAM;
    if (CHUNKS % TEAM == 0 || chunk < CHUNKS) copy_chunk(slot + ORIGIN + 16 * chunk + chunk / (8 * ROW_CHUNKS) * SKEW, plane + 16 * chunk);
  }
  if (PAD != 0 && K > 1 && rank < 2 * ROW_CHUNKS) {
    const bool top = rank < ROW_CHUNKS;
    const int column = 16 * (top ? rank : rank - ROW_CHUNKS), row = top ? (PAD == 1 ? 1 : HEIGHT - 1) : (PAD == 1 ? HEIGHT - 2 : 0);
    copy_chunk(slot + ORIGIN + (top ? row_at(-1) : row_at(HEIGHT)) + column, plane + row * WIDTH + column);
  }
}

// Lane quarter t of a position holds bytes 8 * tile - 4 + 4t to + 3 of padded rows; of the outermost only the byte beside the image has a weight.
__device__ __forceinline__ Place place(int group) {
  const int lane = threadIdx.x % 32, t = lane % 4;
  const int segment = group / ACROSS * 4 + lane / 16, tile = group % ACROSS * 4 + lane / 4 % 4, at = 8 * tile - 4 + 4 * t;
  const bool left = at < 0, right = at >= WIDTH;
  const int inside = PAD == 2 ? (left ? WIDTH - 4 : right ? 0 : at) : (left ? 0 : right ? WIDTH - 4 : at);
  const uint32_t even = PAD == 1 && right ? 0x4442u : 0x4444u, odd = PAD == 1 && left ? 0x4144u : 0x4444u;  // pixels W and -1 are W - 2 and 1, or 0
  const bool natural = PAD == 2 || !(left || right);
  return Place{ORIGIN + segment * (8 * WIDTH + SKEW) + inside, segment * 8 * WIDTH + 8 * tile + 2 * t, natural ? 0x4240u : even, natural ? 0x4341u : odd};
}

// The smallest float above 1/S, times 2^24: ties then round up, and 255 * 2^-23 is less than the 1/(2S) to the next value below a tie.
__device__ __forceinline__ float inverse_above(int S) {
  const float r = 1.f / float(S);
  return (fmaf(r, float(S), -1.f) > 0.f ? r : __uint_as_float(__float_as_uint(r) + 1u)) * 16777216.f;
}

// Two bytes of rescaled pixels, from sums z * 2^-24 (SUM) or START + z * 2^-24.
template <int PASS>
__device__ __forceinline__ uint16_t rescale(float z0, float z1, float inverse, const Divisor& by) {
  if (PASS == SUM) return uint16_t(__byte_perm(__float_as_uint(fmaf(z0, inverse, MAGIC)), __float_as_uint(fmaf(z1, inverse, MAGIC)), 0x0040));
  return divide(z0, z1, by);
}

template <int PASS>
__device__ __forceinline__ void write_row(uint8_t* out, const Place& p, int row, const float (&z)[4], float inverse, const Divisor& by) {
  uint8_t* at = out + p.target;
  *reinterpret_cast<uint16_t*>(at + row * WIDTH) = rescale<PASS>(z[0], z[1], inverse, by);
  *reinterpret_cast<uint16_t*>(at + (LOWER_OUT + row * WIDTH)) = rescale<PASS>(z[2], z[3], inverse, by);
}

// A group's 8 rows: to `out` (SUM, BY_MAX) or into `top`, the greatest bits of a sum; KEEP_SUMS leaves the sums in z.
template <int PASS>
__device__ __forceinline__ void march(float (&z)[8][4], const uint8_t* slot, uint8_t* out, const Place& p, const uint32_t (&band)[K][2], float inverse,
                                      const Divisor& by, int& top) {
  const uint8_t* at = slot + p.source;
#pragma unroll
  for (int i = 0; i < 8 + K - 1; ++i) {
    const uint32_t upper = *reinterpret_cast<const uint32_t*>(at + row_at(i - LEFT));
    const uint32_t lower = *reinterpret_cast<const uint32_t*>(at + (LOWER + row_at(i - LEFT)));
    const uint32_t a[4] = {__byte_perm(upper, 0u, p.even), __byte_perm(lower, 0u, p.even), __byte_perm(upper, 0u, p.odd),
                           __byte_perm(lower, 0u, p.odd)};
#pragma unroll
    for (int j = 0; j < K; ++j)
      if (i - j >= 0 && i - j < 8) multiply(z[i - j], a, band[j], PASS == SUM ? 0.f : START, j == 0);
    const int row = i - (K - 1);
    if (row < 0) continue;
    if (PASS == SUM || PASS == BY_MAX) write_row<PASS>(out, p, row, z[row], inverse, by);
    else {
      top = max(max(top, __float_as_int(z[row][0])), __float_as_int(z[row][1]));
      top = max(max(top, __float_as_int(z[row][2])), __float_as_int(z[row][3]));
    }
  }
}

// A warp's groups of a plane.
template <int PASS>
__device__ __forceinline__ void march_plane(float (&z)[8][4], const uint8_t* slot, uint8_t* out, const Place (&places)[ROUNDS <= 2 ? ROUNDS : 1],
                                            const uint32_t (&band)[K][2], float inverse, const Divisor& by, int& top) {
  const int first = ALONE ? 0 : threadIdx.x / 32;
  if (ROUNDS <= 2) {
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round)
      if (GROUPS % SHARERS == 0 || first + round * SHARERS < GROUPS) march<PASS>(z, slot, out, places[round < 2 ? round : 0], band, inverse, by, top);
  } else {
    for (int group = first; group < GROUPS; group += SHARERS) march<PASS>(z, slot, out, place(group), band, inverse, by, top);
  }
}

// Where a warp writes a plane: into the output, or (STAGED) into one of two stages, which one copy then moves.
struct Writer {
  uint8_t* stage;
  int turn;
  __device__ __forceinline__ uint8_t* open(uint8_t* plane) {
    if (!STAGED) return plane;
#ifdef TENSOR_CORES
    if (threadIdx.x % 32 == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
#endif
    __syncwarp();
    return stage + turn * PIXELS;
  }
  __device__ __forceinline__ void close(uint8_t* plane) {
    if (!STAGED) return;
#ifdef TENSOR_CORES
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
          ::"l"(plane), "r"(uint32_t(__cvta_generic_to_shared(stage + turn * PIXELS))), "r"(PIXELS) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
#else
    __syncwarp();
    for (int i = threadIdx.x % 32; i < CHUNKS; i += 32) copy_chunk(plane + 16 * i, stage + turn * PIXELS + 16 * i);
    __syncwarp();
#endif
    turn ^= 1;
  }
  __device__ __forceinline__ void drain() {  // shared memory has to outlast the copies from it
#ifdef TENSOR_CORES
    if (STAGED && threadIdx.x % 32 == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
  }
};

// The team's planes: plane `index` of unit `unit`, unit + teams, ...; UNIT planes each.
template <int UNIT>
struct Feed {
  uint8_t* ring;
  const uint8_t* images;
  int64_t units, teams;
  int rank;
  __device__ __forceinline__ void next(int slot, int64_t unit, int index) const {  // index may reach into the units that follow
    const int64_t at = unit + index / UNIT * teams;
    if (at < units) fetch(ring + slot * PLANE, images + (at * UNIT + index % UNIT) * PIXELS, rank);
    commit();
  }
};

__device__ __forceinline__ int after(int slot) { return slot + 1 == SLOTS ? 0 : slot + 1; }
__device__ __forceinline__ int before(int slot) { return slot == 0 ? SLOTS - 1 : slot - 1; }

__device__ __forceinline__ int team_max(int top, int* tops) {
  top = warp_max(top);
  if (ALONE) return top;
  const int lane = threadIdx.x % 32;
  if (lane == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  return warp_max(lane < WARPS ? tops[lane] : 0);
}

// bands: [classes][K][2][32] words: for each class and filter row the two B fragments of each lane (toeplitz.halves).
template <bool BY_MAXIMUM>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS) cwc_half(const uint8_t* __restrict__ images, uint8_t* __restrict__ out,
                                                                     const int64_t* __restrict__ labels, const uint32_t* __restrict__ bands,
                                                                     const int* __restrict__ sums, int N) {
  extern __shared__ uint4 memory[];
  __shared__ int tops[WARPS];
  constexpr int UNIT = BY_MAXIMUM || ALONE ? CHANNELS : 1, AHEAD = BY_MAXIMUM && !KEEP ? SLOTS : SLOTS - 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = ALONE ? lane : threadIdx.x;
  const int64_t team = ALONE ? int64_t(blockIdx.x) * WARPS + warp : int64_t(blockIdx.x), teams = int64_t(gridDim.x) * (ALONE ? WARPS : 1);
  uint8_t* ring = reinterpret_cast<uint8_t*>(memory) + (ALONE ? warp * TEAM_BYTES : 0);
  const Feed<UNIT> feed{ring, images, int64_t(N) * (CHANNELS / UNIT), teams, rank};
  Writer writer{ring + SLOTS * PLANE, 0};
  if (PAD == 0) {  // the border rows, which no copy touches
    for (int i = rank; i < SLOTS * 2 * ROW_CHUNKS; i += TEAM) {
      const int slot = i / (2 * ROW_CHUNKS), chunk = i % (2 * ROW_CHUNKS);
      const int row = chunk < ROW_CHUNKS ? row_at(-1) : row_at(HEIGHT);
      *reinterpret_cast<uint4*>(ring + slot * PLANE + ORIGIN + row + 16 * (chunk % ROW_CHUNKS)) = make_uint4(0u, 0u, 0u, 0u);
    }
  }
  for (int i = 0; i < AHEAD; ++i) feed.next(i, team, i);

  int slot = 0;
  int64_t label = team < feed.units ? labels[team * UNIT / CHANNELS] : 0;
  Place places[ROUNDS <= 2 ? ROUNDS : 1];  // up to two places of a plane are kept
#pragma unroll
  for (int round = 0; round < ROUNDS && round < 2; ++round) places[round] = place((ALONE ? 0 : warp) + round * SHARERS);
  for (int64_t unit = team; unit < feed.units; unit += teams) {
    uint32_t band[K][2];
#pragma unroll
    for (int j = 0; j < K; ++j) {
      band[j][0] = __ldg(bands + (label * K + j) * 64 + lane);
      band[j][1] = __ldg(bands + (label * K + j) * 64 + 32 + lane);
    }
    const float inverse = BY_MAXIMUM ? 0.f : inverse_above(max(sums[label], 1));
    const int64_t following = unit + teams;
    if (following < feed.units) label = labels[following * UNIT / CHANNELS];  // on its way during this unit
    uint8_t* planes = out + unit * UNIT * PIXELS;
    Divisor by{};
    int top = 0;
    if (!BY_MAXIMUM || KEEP) {
      float z[UNIT][8][4];
#pragma unroll
      for (int c = 0; c < UNIT; ++c) {
        wait<SLOTS - 2>();
        meet();
        feed.next(before(slot), unit, c + AHEAD);  // into the slot of the plane before, which the whole team has left
        uint8_t* to = BY_MAXIMUM ? nullptr : writer.open(planes + c * PIXELS);
        march_plane<BY_MAXIMUM ? KEEP_SUMS : SUM>(z[c], ring + slot * PLANE, to, places, band, inverse, by, top);
        if (!BY_MAXIMUM) writer.close(planes + c * PIXELS);
        slot = after(slot);
      }
      if (BY_MAXIMUM) {
        by = divisor(max(uint32_t(team_max(top, tops)) - START_BITS, 1u));  // a black image stays black
#pragma unroll
        for (int c = 0; c < UNIT; ++c) {
          uint8_t* to = writer.open(planes + c * PIXELS);
#pragma unroll
          for (int row = 0; row < 8; ++row) write_row<BY_MAX>(to, places[0], row, z[c][row], 0.f, by);
          writer.close(planes + c * PIXELS);
        }
      }
    } else {
      float z[8][4];
      int at = slot;
#pragma unroll
      for (int c = 0; c < CHANNELS; ++c) {
        if (c == 0) wait<SLOTS - 1>();
        if (c == 1) wait<SLOTS - 2>();
        if (c == 2) wait<SLOTS - 3>();
        meet();
        march_plane<FIND_MAX>(z, ring + at * PLANE, nullptr, places, band, 0.f, by, top);
        at = after(at);
      }
      by = divisor(max(uint32_t(team_max(top, tops)) - START_BITS, 1u));
#pragma unroll
      for (int c = 0; c < CHANNELS; ++c) {
        uint8_t* to = writer.open(planes + c * PIXELS);
        march_plane<BY_MAX>(z, ring + slot * PLANE, to, places, band, 0.f, by, top);
        writer.close(planes + c * PIXELS);
        meet();
        feed.next(slot, unit, c + AHEAD);
        slot = after(slot);
      }
    }
  }
  writer.drain();
}

// A block stays and takes team after team: no more blocks than are resident together.
template <bool BY_MAXIMUM>
static int launch(const uint8_t* x, uint8_t* y, const int64_t* labels, const uint32_t* bands, const int* sums, int N, cudaStream_t stream) {
  constexpr int bytes = TEAM_BYTES * (ALONE ? WARPS : 1);
  int resident = 1;
#ifdef TENSOR_CORES
  int device = 0, multiprocessors = 0;
  const cudaError_t codes[] = {
      cudaFuncSetAttribute(cwc_half<BY_MAXIMUM>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
      cudaFuncSetAttribute(cwc_half<BY_MAXIMUM>, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
      cudaGetDevice(&device),
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, cwc_half<BY_MAXIMUM>, 32 * WARPS, bytes)};
  for (const cudaError_t code : codes)
    if (code != cudaSuccess) return int(code);
  resident *= multiprocessors;
  if (resident < 1) return int(cudaErrorInvalidConfiguration);
#endif
  const int64_t units = int64_t(N) * (BY_MAXIMUM || ALONE ? 1 : CHANNELS), needed = ALONE ? (units + WARPS - 1) / WARPS : units;
  const int blocks = int(needed < resident ? needed : resident);
  cwc_half<BY_MAXIMUM><<<blocks, 32 * WARPS, bytes, stream>>>(x, y, labels, bands, sums, N);
  return int(cudaGetLastError());
}

// Device pointers: images [N, 3, HEIGHT, WIDTH] uint8 contiguous, 16-byte aligned, and out like them; labels [N] int64; bands [classes, K, 2, 32] uint32;
// sums [classes] int32 in units of 1/4096. Returns cudaGetLastError().
extern "C" int cwc_half_cuda(const void* images, void* out, const void* labels, const void* bands, const void* sums, int N, int C, int H, int W,
                                   int pad, int by_max, void* stream) {
  if (N * C == 0) return 0;
  if (C != CHANNELS || H != HEIGHT || W != WIDTH || pad != PAD) return int(cudaErrorInvalidValue);
  auto x = static_cast<const uint8_t*>(images);
  auto y = static_cast<uint8_t*>(out);
  auto l = static_cast<const int64_t*>(labels);
  auto b = static_cast<const uint32_t*>(bands);
  auto t = static_cast<const int*>(sums);
  auto q = static_cast<cudaStream_t>(stream);
  return by_max ? launch<true>(x, y, l, b, t, N, q) : launch<false>(x, y, l, b, t, N, q);
}
