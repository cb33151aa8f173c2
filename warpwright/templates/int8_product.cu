// Float32 matrix product from INT8 slices on Hopper tensor cores: C[m, n] = sum over k of A[m, k] * B[n, k], as exact as float32 or better.
//
// Each row of A and of B is scaled so that its largest element is just below 127.5, turned into a fixed-point number of 32 fractional bits, and cut
// into five signed bytes (slices 0 to 4, most significant first; int8_slices.cu does that). The product of slice i of A and slice j of B has the
// order i + j, which is its weight: 2^(-8 (i + j)). Products of one order are summed by the tensor cores in one int32 accumulator, without rounding;
// orders past the level's last are left out. The level of a tile is found on the device from statistics of its rows (`tile_level`):
//
//   level 3: orders 0 to 2,  6 products of 3 slices     ordinary values: relative error 4.6e-4 / (r_a r_b), r = root mean square of a scaled row
//   level 4: orders 0 to 3, 10 products of 4 slices     sparse rows, mild outliers: 2.2e-6 / (r_a r_b)
//   level 5: orders 0 to 4, 15 products of 5 slices     heavy tails: 1e-8 / (r_a r_b)
//
// Ladder
//   1. plain pointers in Triton (shared loads of 3 + 3 slices, six dots a step): 184 to 190 TFLOP/s of float32 at 4096^3 on an H200 (cuBLAS: 51).
//   2. this kernel: persistent, one producer warp that loads by TMA (128-byte swizzle), two consumer warpgroups that each hold 64 x BN of all
//      three orders in registers (3 x 64 = 192 a thread for BN = 128), a ring of slots of one (A slice, B slice) pair, setmaxnreg 40 / 232.
//   Tried and taken out, because slower at every shape on an H200: two blocks of rows that share a block of columns (clusters with TMA multicast: 170 to
//      180 TFLOP/s; 184 to 197 with A in registers), and A read once a step into registers by ldmatrix (242 to 258, no gain at levels 4 and 5 either).
//
// Parameters (macros): BN = 64 | 128 columns a tile; SLOTS: slots of (128 + BN) * 128 bytes, at most 227 KB, five or more;
//   GROUP: rows of tiles walked together, for L2; WATCHDOG: a wait that never ends traps instead of hanging;
//   PROBE, to see what bounds the time, with wrong results: 1 loads nothing, 2 multiplies nothing.
// `batches` products at once: A is batches * (m / batches) rows, B batches * n, C [m, n]; where batches > 1, m / batches and n are multiples of 128.
// Bounds: k at most 24,576, so that no int32 sum overflows (order 4: 5 * 128 * 128 * k < 2^31); k rounded up to 128 by zeros.
//
// What bounds it: shared memory, bytes a clock of 128, for each k-step of 128 at level 3 (3,072 clocks of tensor work): wgmma reads A and B: 96, TMA
// writes 32: full. Predicted from that before the first run: 220 to 235 TFLOP/s, level 4 105 to 120, level 5 80 to 95.
//
// NOTES (outcomes; add below, newest last)
//   H200, torch 2.11, CUDA 13.0, 2026-11-22: 257 TFLOP/s at 4096^3, 267 to 274 at 8192^3, 240 at 1024 x 8192 x 8192, 230 at 2048 x 8192 x 4096, 244 at
//   128 x 16384 x 16384; cuBLAS float32 51. Level 4: 119, level 5: 85. Right to the bit. Without loads 271, without products 416: bound by the tensor
//   cores and their shared-memory reads, as predicted. 6 slots 256 and 274, GROUP=4 249 and 262, BN=64 243 and 242.
//   2026-11-30, not run yet: it looks at its results for rows that are suspect (some 1,100 clocks of 100,000 a tile at k = 4096) and leaves out chunks of
//   zeros. Predicted: 253 to 257 at 4096^3 as it was, an eighth to a quarter of the time for the product of two triangles.

#ifndef PROBE
#define PROBE 0
#endif

#include "hopper.h"
#include "int8_suspect.h"

constexpr int BM = 128, BK = 128, CONSUMERS = 2;
constexpr u32 A_BYTES = BM * BK, SLOT_BYTES = (BM + BN) * BK;
constexpr int FULL_WARPS = 4 * CONSUMERS;  // warps that release a slot
static_assert(SLOTS >= 5, "a step of level 5 holds five slots before it releases one");

// ---- tensor cores -------------------------------------------------------------------------------------------------------------------------------

// c += a (64 x 32) times b (BN x 32) transposed.
#if BN == 128
__device__ __forceinline__ void multiply(int (&c)[64], u64 a, u64 b) {
    asm volatile(
        "{ .reg .pred add; setp.ne.b32 add, 1, 0; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, add; }"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]),
          "+r"(c[8]), "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]),
          "+r"(c[16]), "+r"(c[17]), "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]),
          "+r"(c[24]), "+r"(c[25]), "+r"(c[26]), "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31]),
          "+r"(c[32]), "+r"(c[33]), "+r"(c[34]), "+r"(c[35]), "+r"(c[36]), "+r"(c[37]), "+r"(c[38]), "+r"(c[39]),
          "+r"(c[40]), "+r"(c[41]), "+r"(c[42]), "+r"(c[43]), "+r"(c[44]), "+r"(c[45]), "+r"(c[46]), "+r"(c[47]),
          "+r"(c[48]), "+r"(c[49]), "+r"(c[50]), "+r"(c[51]), "+r"(c[52]), "+r"(c[53]), "+r"(c[54]), "+r"(c[55]),
          "+r"(c[56]), "+r"(c[57]), "+r"(c[58]), "+r"(c[59]), "+r"(c[60]), "+r"(c[61]), "+r"(c[62]), "+r"(c[63])
        : "l"(a), "l"(b));
}

#else
__device__ __forceinline__ void multiply(int (&c)[32], u64 a, u64 b) {
    asm volatile(
        "{ .reg .pred add; setp.ne.b32 add, 1, 0; wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, add; }"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]),
          "+r"(c[8]), "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]),
          "+r"(c[16]), "+r"(c[17]), "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]),
          "+r"(c[24]), "+r"(c[25]), "+r"(c[26]), "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31])
        : "l"(a), "l"(b));
}

#endif

// ---- the ring of slots ----------------------------------------------------------------------------------------------------------------------------

struct Ring {  // where producer or consumer is; both walk the same sequence of slots
    u32 data, full, empty;  // shared addresses of slot 0 and of the two rows of barriers
    u32 slot, parity;

    __device__ __forceinline__ void next() {
        if (++slot == SLOTS) {
            slot = 0;
            parity ^= 1;
        }
    }
    __device__ __forceinline__ u32 address() const { return data + slot * SLOT_BYTES; }
    __device__ __forceinline__ u32 take() {  // consumer: wait for the next slot and step past it
        barrier_wait(full + 8 * slot, parity);
        const u32 at = address();
        next();
        return at;
    }
};

__device__ __forceinline__ void release_slots(const Ring& ring, u32& first, int count, int lane) {
    for (int i = 0; i < count; ++i) {
        release(ring.empty + 8 * first, lane);
        if (++first == SLOTS) first = 0;
    }
}

// ---- one step of k ----------------------------------------------------------------------------------------------------------------------------------

struct Pair {
    u64 a, b;  // descriptors of this warpgroup's 64 rows of A and of the BN rows of B, of one slice
};

__device__ __forceinline__ Pair take_pair(Ring& ring, u32 rows) {
    const u32 at = ring.take();
    return {descriptor(at + rows), descriptor(at + A_BYTES)};
}

template <int SUMS>
__device__ __forceinline__ void multiply_all(int (&c)[SUMS], u64 a, u64 b) {  // 128 of k, 32 bytes at a time: 2 in units of a descriptor
#pragma unroll
    for (int i = 0; i < (PROBE == 2 ? 0 : BK / 32); ++i) multiply(c, a + 2 * i, b + 2 * i);
}

// Orders 0 to 2 of one step. On return the products of this step may be under way; those of the step before are done and its slots released.
template <int SUMS>
__device__ __forceinline__ void high_step(int (&c)[3][SUMS], Ring& ring, u32 rows, u32& first, bool later, int lane) {
    const Pair p0 = take_pair(ring, rows);
    begin_products();
    multiply_all(c[0], p0.a, p0.b);
    commit_products();
    wait_products<1>();
    if (later) release_slots(ring, first, 3, lane);
    const Pair p1 = take_pair(ring, rows);
    begin_products();
    multiply_all(c[1], p0.a, p1.b);
    multiply_all(c[1], p1.a, p0.b);
    multiply_all(c[2], p1.a, p1.b);
    const Pair p2 = take_pair(ring, rows);
    begin_products();
    multiply_all(c[2], p0.a, p2.b);
    multiply_all(c[2], p2.a, p0.b);
    commit_products();
}

// Order 3 into c[0] (level 4), and order 4 into c[1] as well (level 5).
template <int LEVEL, int SUMS>
__device__ __forceinline__ void low_step(int (&c)[3][SUMS], Ring& ring, u32 rows, u32& first, int lane) {
    Pair p[LEVEL];
#pragma unroll
    for (int s = 0; s < LEVEL; ++s) p[s] = take_pair(ring, rows);
    begin_products();
#pragma unroll
    for (int s = 0; s < 4; ++s) multiply_all(c[0], p[s].a, p[3 - s].b);
    if constexpr (LEVEL == 5) {
#pragma unroll
        for (int s = 0; s < 5; ++s) multiply_all(c[1], p[s].a, p[4 - s].b);
    }
    commit_products();
    wait_products<0>();
    release_slots(ring, first, LEVEL, lane);
}

template <int SUMS>
__device__ __forceinline__ void clear(int (&c)[3][SUMS]) {
#pragma unroll
    for (int order = 0; order < 3; ++order) {
#pragma unroll
        for (int i = 0; i < SUMS; ++i) c[order][i] = 0;
    }
}

// ---- results ----------------------------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ double exact(int x) {  // int32 -> double by bits: the conversion unit is four times slower
    return __hiloint2double(0x43300000, x ^ 0x80000000) - 4503601774854144.0;
}

struct Place {  // of this thread's sums: rows `row` and `row` + 8, pairs of columns 8 apart from `column`
    float* c;
    long long pitch;
    int row, column, m, n;

    __device__ __forceinline__ float* at(int half, int pair) const { return c + (row + 8 * half) * pitch + column + 8 * pair; }
    __device__ __forceinline__ bool holds(int half, int pair, int side) const { return row + 8 * half < m && column + 8 * pair + side < n; }
};

struct Peaks {  // largest magnitudes of this thread's results, in scaled units: of its two rows, and of each of its columns
    int rows[2], columns[BN / 4];
};

// Orders 3 and 4, in units of order 2, wait in C; this thread alone reads them back.
template <int SUMS>
__device__ __forceinline__ void keep_low(const int (&c)[3][SUMS], const Place& place) {
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        const int pair = i / 4, half = i / 2 % 2, side = i % 2;
        if (place.holds(half, pair, side)) place.at(half, pair)[side] = (float)c[0][i] * (1.0f / 256) + (float)c[1][i] * (1.0f / 65536);
    }
}

template <int SUMS>
__device__ __forceinline__ void store(const int (&c)[3][SUMS], const Place& place, const double* a_inverse, const double* b_inverse, bool low, Peaks& peaks) {
    const double inverse[2] = {place.row < place.m ? a_inverse[place.row] : 0.0, place.row + 8 < place.m ? a_inverse[place.row + 8] : 0.0};
    peaks.rows[0] = peaks.rows[1] = 0;
    const bool wide = (place.n & 1) == 0 && (place.pitch & 1) == 0;
#pragma unroll
    for (int pair = 0; pair < BN / 8; ++pair) {
        double scale[2];
#pragma unroll
        for (int side = 0; side < 2; ++side) scale[side] = place.column + 8 * pair + side < place.n ? b_inverse[place.column + 8 * pair + side] : 0.0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float value[2];
            int size[2];
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                const int i = 4 * pair + 2 * half + side;
                const int high = c[0][i] + (c[1][i] >> 8), rest = ((c[1][i] & 255) << 8) + c[2][i];
                size[side] = max(high, -high);
                double sum = exact(high) * 65536.0 + exact(rest);
                if (low && place.holds(half, pair, side)) sum += place.at(half, pair)[side];
                value[side] = (float)(sum * (inverse[half] * scale[side]));
            }
            peaks.rows[half] = max(peaks.rows[half], max(size[0], size[1]));
#pragma unroll
            for (int side = 0; side < 2; ++side) peaks.columns[2 * pair + side] = half ? max(peaks.columns[2 * pair + side], size[side]) : size[side];
            if (wide) {
                if (place.holds(half, pair, 1)) *(float2*)place.at(half, pair) = make_float2(value[0], value[1]);
            } else {
                if (place.holds(half, pair, 0)) place.at(half, pair)[0] = value[0];
                if (place.holds(half, pair, 1)) place.at(half, pair)[1] = value[1];
            }
        }
    }
}

__device__ __forceinline__ int larger_of_lanes(int x, int mask) { return max(x, __shfl_xor_sync(0xFFFFFFFFu, x, mask)); }

// The largest of each column over the warp's 16 rows: of the COUNT columns of four lanes' threads each thread ends up with an eighth.
template <int COUNT>
__device__ __forceinline__ void exchange(int (&x)[BN / 4], int lane, int mask) {
    const bool upper = lane & mask;
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i) {
        const int kept = upper ? x[i + COUNT / 2] : x[i], given = upper ? x[i] : x[i + COUNT / 2];
        x[i] = max(kept, __shfl_xor_sync(0xFFFFFFFFu, given, mask));
    }
}

struct Norms {  // of both sides' scaled rows, and the bound of 128 rows of B (int8_suspect.h)
    const float *a, *b, *b_floors;
};

// Whether a row of the tile, or a column within this warp's 16 rows, is suspect (int8_suspect.h). b: the first row of B.
__device__ __forceinline__ bool is_suspect(Peaks& peaks, const Place& place, const Norms& of, int b, int k, int lane) {
    constexpr int LEFT = BN / 32;  // columns a thread
    const float share = rsqrtf((float)k), floor = of.b_floors[b / 128] * share;
    float second = 0, fourth = 0, count = 0;
    bool found = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float norm = place.row + 8 * half < place.m ? of.a[place.row + 8 * half] : 0.0f;
        found |= (float)larger_of_lanes(larger_of_lanes(peaks.rows[half], 1), 2) < norm * floor;
        second += norm * norm, fourth += norm * norm * norm * norm, count += norm > 0.0f ? 1.0f : 0.0f;
    }
#pragma unroll
    for (int mask = 4; mask <= 16; mask *= 2) {
        second += __shfl_xor_sync(0xFFFFFFFFu, second, mask);
        fourth += __shfl_xor_sync(0xFFFFFFFFu, fourth, mask);
        count += __shfl_xor_sync(0xFFFFFFFFu, count, mask);
    }
    exchange<BN / 4>(peaks.columns, lane, 16);
    exchange<BN / 8>(peaks.columns, lane, 8);
    exchange<BN / 16>(peaks.columns, lane, 4);
    const float columns_floor = floor_of(second, fourth, count) * share;
    const int first = ((lane >> 4 & 1) * 4 + (lane >> 3 & 1) * 2 + (lane >> 2 & 1)) * LEFT;  // of the columns of lanes alike modulo 4
#pragma unroll
    for (int i = 0; i < LEFT; ++i) {
        const int at = 8 * ((first + i) / 2) + (first + i) % 2;
        if (place.column + at < place.n) found |= (float)peaks.columns[i] < of.b[b + lane % 4 * 2 + at] * columns_floor;
    }
    return __any_sync(0xFFFFFFFFu, found);
}

// ---- the chunks of k -----------------------------------------------------------------------------------------------------------------------------

struct Chunks {  // of 128 rows of A and of B each, bit by bit: which 128 elements are not all zero. Where those of either side are, nothing is done.
    const u32 *a, *b;
    int words;

    __device__ __forceinline__ Chunks of(int a_row, int b_row) const { return {a + a_row / 128 * words, b + b_row / 128 * words, words}; }
    __device__ __forceinline__ u32 word(int i) const { return a[i] & b[i]; }
    __device__ __forceinline__ int count() const {
        int found = 0;
        for (int i = 0; i < words; ++i) found += __popc(word(i));
        return found;
    }
};

// ---- the kernel -------------------------------------------------------------------------------------------------------------------------------------

#include "int8_tile.h"

extern "C" __global__ void __launch_bounds__(128 * (1 + CONSUMERS), 1)
    int8_product(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, float* c_out, long long pitch, const double* a_inverse,
                 const double* b_inverse, const float2* a_blocks, const float2* b_blocks, const u32* a_chunks, const u32* b_chunks, const float* a_norms,
                 const float* b_norms, const float* b_floors, unsigned char* suspects, float* any_suspect, int m, int n, int k, int fixed_level,
                 int batches) {
    extern __shared__ __align__(1024) char storage[];
    __shared__ __align__(8) u64 barriers[2 * SLOTS];
    const int lane = threadIdx.x % 32, group = threadIdx.x / 128;
    const u32 start = (shared_address(storage) + 1023) & ~1023u;
    Ring ring = {start, shared_address(barriers), shared_address(barriers + SLOTS), 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; ++i) {
            barrier_init(ring.full + 8 * i, 1);
            barrier_init(ring.empty + 8 * i, FULL_WARPS);
        }
        barriers_begin();
    }
    __syncthreads();
    const int tiles = tiles_of(m, n, batches);
    const Chunks all = {a_chunks, b_chunks, (k + 32 * BK - 1) / (32 * BK)};

    if (group == 0) {  // producer: one thread
        fewer_registers<40>();
        if (threadIdx.x == 0) {
            for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
                const Tile tile = tile_of(index, m, n, batches, (float)k, a_blocks, b_blocks, fixed_level);
                const Chunks chunks = all.of(tile.row, tile.b_row);
                for (int pass = tile.level > 3 ? 0 : 1; pass < 2; ++pass) {
                    const int slices = pass ? 3 : tile.level;
                    for (int word = 0; word < chunks.words; ++word)
                        for (u32 left = chunks.word(word); left != 0; left &= left - 1) {
                            const int start = (32 * word + __ffs((int)left) - 1) * BK;
                            for (int slice = 0; slice < slices; ++slice) {
                                const u32 full = ring.full + 8 * ring.slot, at = ring.address();
                                barrier_wait(ring.empty + 8 * ring.slot, ring.parity ^ 1);
                                if (PROBE == 1) {
                                    release_one(full);
                                    ring.next();
                                    continue;
                                }
                                barrier_expect(full, SLOT_BYTES);
                                load(at, a_map, start, tile.row, slice, full);
                                load(at + A_BYTES, b_map, start, tile.b_row, slice, full);
                                ring.next();
                            }
                        }
                }
            }
        }
        __syncwarp();
    } else {
        more_registers<232>();
        const int warp = threadIdx.x / 32 % 4;
        const u32 rows = (group - 1) * 64 * BK;
        u32 first = 0;  // the oldest slot that this warp has not released
        int c[3][BN / 2];
        for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
            const Tile tile = tile_of(index, m, n, batches, (float)k, a_blocks, b_blocks, fixed_level);
            const Place place = {c_out, pitch, tile.row + (group - 1) * 64 + warp * 16 + lane / 4, tile.column + lane % 4 * 2, m, n};
            const int steps = all.of(tile.row, tile.b_row).count(), level = steps > 0 ? tile.level : 3;
            clear(c);
            if (level > 3) {
                if (level == 4)
                    for (int step = 0; step < steps; ++step) low_step<4>(c, ring, rows, first, lane);
                else
                    for (int step = 0; step < steps; ++step) low_step<5>(c, ring, rows, first, lane);
                keep_low(c, place);
                clear(c);
            }
            for (int step = 0; step < steps; ++step) high_step(c, ring, rows, first, step > 0, lane);
            wait_products<0>();  // whatever `steps` is: where it were conditional, ptxas would serialise all products
            if (steps > 0) release_slots(ring, first, 3, lane);
            Peaks peaks;
            store(c, place, a_inverse, b_inverse + (tile.b_row - tile.column), level > 3, peaks);
            const bool suspect = steps > 0 && is_suspect(peaks, place, {a_norms, b_norms, b_floors}, tile.b_row, k, lane);
            if (lane == 0) {
                const int across = (n + BN - 1) / BN;
                suspects[(tile.row / BM * across + tile.column / BN) * FULL_WARPS + (group - 1) * 4 + warp] = suspect;
                if (suspect) *any_suspect = 1.0f;
            }
        }
    }
}
