// Class-wise convolution of uint8 colour images with small filters (k <= 3), divided by the image's maximum, for images whose sums no multiprocessor can
// hold, on NVIDIA GPUs with thread-block clusters (definition: operator.py).
//
// No pixel can be written before the last sum is known, and the float32 sums of 224x224 fill 588 KB. cwc_half.cu multiplies twice; here a cluster of
// CLUSTER blocks shares an image, each block keeps the sums of its part in registers, and so the products (those of cwc_half.cu) are made once.
//   parts      CLUSTER a multiple of 3: each plane cut into CLUSTER / 3 bands of rows. Else: all three planes cut into CLUSTER bands.
//   loop       a warp writes a row of the image before from the registers that the next image's sums then take: the division's integer instructions go
//              between the products' tensor instructions, and an image costs one exchange, of the maximum.
//   exchange   each warp sends its maximum to all blocks of the cluster, where the arriving bytes complete a barrier in shared memory. That every warp has
//              sent also says that the part's slot can be filled anew.
//   ring       SLOTS parts, with the rows above and below, a few bulk copies each.
// Conditions (toeplitz.suits_halves, gpu.py): k <= 3, three channels, sides in whole 32s, images 16-byte aligned.
// K, HEIGHT, WIDTH, PAD (0 zero, 1 reflect, 2 circular), CLUSTER, WARPS, BLOCKS (an SM), SLOTS come from the build line.
#include "cwc_half.h"

constexpr int PIXELS = HEIGHT * WIDTH, TILES = WIDTH / 8;
constexpr int PLANES = CLUSTER % 3 == 0 ? 1 : 3, BANDS = CLUSTER * PLANES / 3, ROWS = HEIGHT / BANDS;  // a part: ROWS rows of PLANES planes
constexpr int POSITIONS = PLANES * (ROWS / 8) * TILES;           // 8 x 8 pixels each
constexpr int UNITS = (POSITIONS + 15) / 16, EACH = (UNITS + WARPS - 1) / WARPS;  // a unit: the 16 positions of a product; EACH a warp
constexpr int PLANE = ((ROWS + 2) * WIDTH + 127) / 128 * 128, SLOT = PLANES * PLANE;  // 8 positions side by side, over ends of rows too, meet in no bank
static_assert(K <= 3 && WIDTH % 32 == 0 && HEIGHT % (8 * BANDS) == 0 && SLOTS >= 2 && CLUSTER <= 8);

struct Part { int plane, row; };  // its first ones

// One lane's part of a position. It reads the word at `source` of each row in a slot; `even` and `odd` pick pixels 0 and 2, 1 and 3 of the padded row from it,
// as halves. Its two pixels belong at `target` of each row of the image's output.
struct Place { int source, target; uint32_t even, odd; };
constexpr int SOURCE_BITS = 14;  // a place in one register: edge, target / 2 and source / 4
static_assert(SLOT / 4 <= 1 << SOURCE_BITS && CHANNELS * PIXELS / 2 <= 1 << 17);

__device__ __forceinline__ Part part_of(int rank) { return Part{PLANES == 1 ? rank / BANDS : 0, rank % BANDS * ROWS}; }

// Lane quarter t of a position holds bytes 8 * tile - 4 + 4t to + 3 of padded rows; of the outermost only the byte beside the image has a weight. Positions
// beyond the last are the last again: the same bytes to the same place.
__device__ __forceinline__ uint32_t pack_place(int position, const Part& part) {
  const int at = min(position, POSITIONS - 1), t = threadIdx.x % 4, tile = at % TILES, segment = at / TILES % (ROWS / 8), plane = at / TILES / (ROWS / 8);
  const int column = 8 * tile - 4 + 4 * t;
  const bool left = column < 0, right = column >= WIDTH;
  const int inside = PAD == 2 ? (left ? WIDTH - 4 : right ? 0 : column) : (left ? 0 : right ? WIDTH - 4 : column);
  const int source = plane * PLANE + (8 * segment + 1) * WIDTH + inside;
  const int target = (part.plane + plane) * PIXELS + (part.row + 8 * segment) * WIDTH + 8 * tile + 2 * t;
  return uint32_t(left || right) << 31 | uint32_t(target / 2) << SOURCE_BITS | uint32_t(source / 4);
}

__device__ __forceinline__ Place unpack_place(uint32_t packed) {
  const int edge = int(packed) < 0 ? int(threadIdx.x) % 4 : 1;  // 0 left, 3 right
  const uint32_t even = PAD == 2 || edge != 3 ? 0x4240u : PAD == 1 ? 0x4442u : 0x4444u;  // pixels W and -1 are W - 2 and 1, or 0
  const uint32_t odd = PAD == 2 || edge != 0 ? 0x4341u : PAD == 1 ? 0x4144u : 0x4444u;
  return Place{int(packed & ((1u << SOURCE_BITS) - 1u)) * 4, int(packed >> SOURCE_BITS & 0x1ffffu) * 2, even, odd};
}

__device__ __forceinline__ int warp_index() {  // by lane exchange, so that the compiler sees that a warp's lanes go the same way
  return __shfl_sync(FULL, int(threadIdx.x) / 32, 0);
}

#ifdef TENSOR_CORES
__device__ __forceinline__ uint32_t reloaded(uint32_t word) {  // else what is computed from it is kept in registers over all images
  asm volatile("" : "+r"(word));
  return word;
}
__device__ __forceinline__ uint32_t shared_address(const void* at) { return uint32_t(__cvta_generic_to_shared(at)); }

// Barriers in shared memory: of the ring's slots, and of two exchanges in turn (a fast block's next maximum may arrive before a slow one's).
struct Barriers { uint64_t full[SLOTS], found[2]; };

__device__ __forceinline__ int cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return int(rank);
}
__device__ __forceinline__ void start(Barriers& barriers) {  // whole cluster, before the first copy and the first exchange
  if (threadIdx.x == 0) {
    for (int i = 0; i < SLOTS; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barriers.full[i])) : "memory");
    for (int i = 0; i < 2; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barriers.found[i])) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ void expect(uint64_t& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(uint64_t& barrier, int phase) {
  asm volatile("{\n\t.reg .pred done;\n\tagain:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}"
               ::"r"(shared_address(&barrier)), "r"(phase) : "memory");
}
__device__ __forceinline__ void copy_rows(uint8_t* to, const uint8_t* from, int bytes, uint64_t& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(&barrier)) : "memory");
}
__device__ __forceinline__ void send(int block, int value, const int& to, const uint64_t& barrier) {  // to the same places in another block
  uint32_t there, counter;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(&to)), "r"(block));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counter) : "r"(shared_address(&barrier)), "r"(block));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there), "r"(value), "r"(counter) : "memory");
}
#else  // what runs on the CPU: copies at once, barriers of the block, and maxima through global memory in two launches, of which the first finds them
struct Barriers { uint64_t full[SLOTS], found[2]; };
__device__ __forceinline__ uint32_t reloaded(uint32_t word) { return word; }
__device__ __forceinline__ int cluster_rank() { return int(blockIdx.x) % CLUSTER; }
__device__ __forceinline__ void start(Barriers&) { __syncthreads(); }
__device__ __forceinline__ void expect(uint64_t&, int) {}
__device__ __forceinline__ void await(uint64_t&, int) { __syncthreads(); }
__device__ __forceinline__ void copy_rows(uint8_t* to, const uint8_t* from, int bytes, uint64_t&) {
  for (int i = 0; i < bytes / 4; ++i) reinterpret_cast<uint32_t*>(to)[i] = reinterpret_cast<const uint32_t*>(from)[i];
}
#endif

// The ring: slot n % SLOTS takes this block's part of the n-th image of its cluster. A warp copies.
struct Feed {
  uint8_t* ring;
  Barriers& barriers;
  const uint8_t* images;  // the first one's
  int64_t step;           // bytes from one image of the cluster to its next
  Part part;

  __device__ __forceinline__ void fetch(int n) const {
    const int lane = threadIdx.x % 32, slot = n % SLOTS, first = max(part.row - 1, 0), behind = min(part.row + ROWS + 1, HEIGHT);
    const bool top = part.row == 0, bottom = part.row + ROWS == HEIGHT;  // there a border row is another row's copy, or zero and never copied
    uint64_t& barrier = barriers.full[slot];
    if (lane == 0) expect(barrier, PLANES * WIDTH * (behind - first + (PAD == 0 ? 0 : top + bottom)));
    __syncwarp();
    if (lane < 3 * PLANES) {
      const int c = lane / 3, what = lane % 3;
      const uint8_t* plane = images + n * step + int64_t(part.plane + c) * PIXELS;
      uint8_t* row = ring + slot * SLOT + c * PLANE + WIDTH;  // of the part's first row
      if (what == 0) copy_rows(row + (first - part.row) * WIDTH, plane + first * WIDTH, (behind - first) * WIDTH, barrier);
      if (what == 1 && PAD != 0 && top) copy_rows(row - WIDTH, plane + (PAD == 1 ? 1 : HEIGHT - 1) * WIDTH, WIDTH, barrier);
      if (what == 2 && PAD != 0 && bottom) copy_rows(row + ROWS * WIDTH, plane + (PAD == 1 ? HEIGHT - 2 : 0) * WIDTH, WIDTH, barrier);
    }
  }
  __device__ __forceinline__ void clear() const {  // the border rows that no copy touches
    if (PAD != 0) return;
    for (int i = threadIdx.x; i < SLOTS * PLANES * 2 * (WIDTH / 4); i += 32 * WARPS) {
      const int word = i % (WIDTH / 4), line = i / (WIDTH / 4);
      const bool top = line % 2 == 0;
      if (part.row == 0 || !top)
        if (part.row + ROWS == HEIGHT || top)
          reinterpret_cast<uint32_t*>(ring + line / 2 / PLANES * SLOT + line / 2 % PLANES * PLANE + (top ? 0 : ROWS + 1) * WIDTH)[word] = 0u;
    }
  }
};

// A row of one unit's output. Neighbouring lanes exchange pairs of pixels, and so each writes four bytes: even lanes to the upper position, odd ones to the
// lower.
__device__ __forceinline__ void write_row(uint8_t* out, const Place& upper, const Place& lower, int row, const float (&z)[4], const Divisor& by) {
  const bool odd = threadIdx.x % 2;
  const uint32_t mine = divide(z[0], z[1], by) | uint32_t(divide(z[2], z[3], by)) << 16, theirs = __shfl_xor_sync(FULL, mine, 1);
  *reinterpret_cast<uint32_t*>(out + (odd ? lower.target - 2 : upper.target) + row * WIDTH) = __byte_perm(mine, theirs, odd ? 0x3276 : 0x5410);
}

// A unit's 8 rows. WRITE: z holds the sums of the image before, and goes to `out`. MARCH: z takes those of the image in `slot`, `top` their greatest bits.
template <bool WRITE, bool MARCH>
__device__ __forceinline__ void unit(float (&z)[8][4], const uint8_t* slot, uint8_t* out, const Place& upper, const Place& lower,
                                     const uint32_t (&band)[K][2], const Divisor& by, int& top) {
#pragma unroll
  for (int i = 0; i < 8 + K - 1; ++i) {
    if (WRITE && i < 8) write_row(out, upper, lower, i, z[i], by);
    if (!MARCH) continue;
    const uint32_t above = *reinterpret_cast<const uint32_t*>(slot + upper.source + (i - LEFT) * WIDTH);
    const uint32_t below = *reinterpret_cast<const uint32_t*>(slot + lower.source + (i - LEFT) * WIDTH);
    const uint32_t a[4] = {__byte_perm(above, 0u, upper.even), __byte_perm(below, 0u, lower.even), __byte_perm(above, 0u, upper.odd),
                           __byte_perm(below, 0u, lower.odd)};
#pragma unroll
    for (int j = 0; j < K; ++j)
      if (i - j >= 0 && i - j < 8) multiply(z[i - j], a, band[j], START, j == 0);
    const int row = i - (K - 1);
    if (row < 0) continue;
    top = max(max(top, __float_as_int(z[row][0])), __float_as_int(z[row][1]));
    top = max(max(top, __float_as_int(z[row][2])), __float_as_int(z[row][3]));
  }
}

// A warp's units: neighbours, so that with fewer units than WARPS * EACH the last warps have less to do, and the very last makes the copies.
template <bool WRITE, bool MARCH>
__device__ __forceinline__ void units(float (&z)[EACH][8][4], const uint8_t* slot, uint8_t* out, const uint32_t (&places)[EACH][2], int warp,
                                      const uint32_t (&band)[K][2], const Divisor& by, int& top) {
#pragma unroll
  for (int u = 0; u < EACH; ++u) {
    if (WARPS * EACH > UNITS && warp * EACH + u >= UNITS) continue;
    const Place upper = unpack_place(reloaded(places[u][0])), lower = unpack_place(reloaded(places[u][1]));
    unit<WRITE, MARCH>(z[u], slot, out, upper, lower, band, by, top);
  }
}

// Exchange number n: the maximum of all parts of an image, where `top` is a lane's.
struct Exchange {
  int (&tops)[2][CLUSTER * WARPS];
  Barriers& barriers;
  int rank;

  __device__ __forceinline__ void give(int n, int warp, int top) const {
    const int lane = threadIdx.x % 32, turn = n % 2;
    top = warp_max(top);
#ifdef TENSOR_CORES
    if (threadIdx.x == 0) expect(barriers.found[turn], 4 * CLUSTER * WARPS);
    if (lane < CLUSTER) send(lane, top, tops[turn][rank * WARPS + warp], barriers.found[turn]);
#else
    if (lane == 0) tops[turn][rank * WARPS + warp] = top;
#endif
  }
  __device__ __forceinline__ int take(int n, int* found) const {
    const int lane = threadIdx.x % 32, turn = n % 2;
    await(barriers.found[turn], n / 2 % 2);
    int top = 0;
#ifdef TENSOR_CORES
#pragma unroll
    for (int i = 0; i < (CLUSTER * WARPS + 31) / 32; ++i)
      if (lane + 32 * i < CLUSTER * WARPS) top = max(top, tops[turn][lane + 32 * i]);
    return warp_max(top);
#else
    for (int i = 0; i < WARPS; ++i) top = max(top, tops[turn][rank * WARPS + i]);
    if (threadIdx.x == 0) found[rank] = top;
    for (int i = 0; i < CLUSTER; ++i) top = max(top, found[i]);
    return top;
#endif
  }
};

// bands: [classes][K][2][32] words: for each class and filter row the two B fragments of each lane (toeplitz.halves). found: [N][CLUSTER], on the CPU alone.
__global__ void __launch_bounds__(32 * WARPS, BLOCKS) cwc_cluster(const uint8_t* __restrict__ images, uint8_t* __restrict__ out,
                                                                        const int64_t* __restrict__ labels, const uint32_t* __restrict__ bands, int* found,
                                                                        int N) {
  extern __shared__ uint4 memory[];
  __shared__ int tops[2][CLUSTER * WARPS];
  __shared__ Barriers barriers;
  const int warp = warp_index(), lane = threadIdx.x % 32, rank = cluster_rank();
  const int cluster = int(blockIdx.x) / CLUSTER, clusters = int(gridDim.x) / CLUSTER, count = (N - cluster + clusters - 1) / clusters;
  const Part part = part_of(rank);
  uint8_t* ring = reinterpret_cast<uint8_t*>(memory);
  const Feed feed{ring, barriers, images + int64_t(cluster) * (CHANNELS * PIXELS), int64_t(clusters) * (CHANNELS * PIXELS), part};
  const Exchange exchange{tops, barriers, rank};
  feed.clear();
  start(barriers);
  if (warp == WARPS - 1)
    for (int n = 0; n < SLOTS && n < count; ++n) feed.fetch(n);

  uint32_t places[EACH][2];
#pragma unroll
  for (int u = 0; u < EACH; ++u)
    for (int half = 0; half < 2; ++half) places[u][half] = pack_place(16 * (warp * EACH + u) + 8 * half + lane / 4, part);
  float z[EACH][8][4];
  uint32_t band[K][2];
  Divisor by{};
  int64_t label = labels[cluster];
  for (int n = 0; n <= count; ++n) {  // turn n makes image n's sums and writes image n - 1
    const int64_t image = cluster + int64_t(n) * clusters;
    if (n < count) {
#pragma unroll
      for (int j = 0; j < K; ++j) {
        band[j][0] = __ldg(bands + (label * K + j) * 64 + lane);
        band[j][1] = __ldg(bands + (label * K + j) * 64 + 32 + lane);
      }
      if (n + 1 < count) label = labels[image + clusters];  // on its way during this image
    }
    if (n > 0) {
      by = divisor(max(uint32_t(exchange.take(n - 1, found + (image - clusters) * CLUSTER)) - START_BITS, 1u));  // a black image stays black
      if (warp == WARPS - 1 && n - 1 + SLOTS < count) feed.fetch(n - 1 + SLOTS);
    }
    uint8_t* before = out + (image - clusters) * (CHANNELS * PIXELS);
    const uint8_t* slot = ring + n % SLOTS * SLOT;
    int top = 0;
    if (n < count) await(barriers.full[n % SLOTS], n / SLOTS % 2);
    if (n == 0) units<false, true>(z, slot, before, places, warp, band, by, top);
    else if (n < count) units<true, true>(z, slot, before, places, warp, band, by, top);
    else units<true, false>(z, slot, before, places, warp, band, by, top);
    if (n < count) exchange.give(n, warp, top);
  }
}

// A block stays and takes image after image: no more clusters than are resident together.
static int launch(const uint8_t* x, uint8_t* y, const int64_t* labels, const uint32_t* bands, int N, cudaStream_t stream) {
  constexpr int bytes = SLOTS * SLOT;
#ifdef TENSOR_CORES
  cudaLaunchAttribute shape{};
  shape.id = cudaLaunchAttributeClusterDimension;
  shape.val.clusterDim.x = CLUSTER;
  shape.val.clusterDim.y = shape.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(CLUSTER);
  config.blockDim = dim3(32 * WARPS);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &shape;
  config.numAttrs = 1;
  int resident = 0;
  const cudaError_t codes[] = {cudaFuncSetAttribute(cwc_cluster, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                               cudaFuncSetAttribute(cwc_cluster, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
                               cudaOccupancyMaxActiveClusters(&resident, cwc_cluster, &config)};
  for (const cudaError_t code : codes)
    if (code != cudaSuccess) return int(code);
  if (resident < 1) return int(cudaErrorInvalidConfiguration);
  config.gridDim = dim3(CLUSTER * (N < resident ? N : resident));
  return int(cudaLaunchKernelEx(&config, cwc_cluster, x, y, labels, bands, static_cast<int*>(nullptr), N));
#else
  int* found = nullptr;
  const size_t size = size_t(N) * CLUSTER * sizeof(int);
  if (cudaMalloc(reinterpret_cast<void**>(&found), size) != cudaSuccess) return int(cudaErrorMemoryAllocation);
  cudaMemset(found, 0, size);
  const int clusters = N < 2 ? N : 2;
  for (int pass = 0; pass < 2; ++pass) cwc_cluster<<<CLUSTER * clusters, 32 * WARPS, bytes, stream>>>(x, y, labels, bands, found, N);
  cudaFree(found);
  return int(cudaGetLastError());
#endif
}

// Device pointers: images [N, 3, HEIGHT, WIDTH] uint8 contiguous, 16-byte aligned, and out like them; labels [N] int64; bands [classes, K, 2, 32] uint32.
// Returns cudaGetLastError().
extern "C" int cwc_cluster_cuda(const void* images, void* out, const void* labels, const void* bands, const void*, int N, int C, int H, int W, int pad,
                                      int by_max, void* stream) {
  if (N * C == 0) return 0;
  if (C != CHANNELS || H != HEIGHT || W != WIDTH || pad != PAD || !by_max) return int(cudaErrorInvalidValue);
  return launch(static_cast<const uint8_t*>(images), static_cast<uint8_t*>(out), static_cast<const int64_t*>(labels), static_cast<const uint32_t*>(bands), N,
                static_cast<cudaStream_t>(stream));
}
