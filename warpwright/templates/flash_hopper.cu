// Attention on Hopper's tensor cores in 16 bits: y[i] = sum over j of softmax over j (scale q[i] k[j]) v[j], causal or not. Scores may be capped,
// c tanh(scale q[i] k[j] / c), and a row may have a sink: exp(sink[i]) more in what its softmax divides by.
//
// Ladder
//   1. domains/graph/kernels/flash_attention.py, in Triton: 0.61 to 0.86 of cuDNN's kernel on an H200.
//   2. this kernel, as FlashAttention 3 is made (Shah et al., arXiv 2407.08608): one producer warp that loads by TMA (128-byte swizzle), CONSUMERS
//      warpgroups of 64 rows; a tile's scores are under way while the tile before is multiplied with its values (both products of a step are issued, then
//      the softmax of the new scores runs beside the second); warpgroups take turns at the tensor cores (TURNS), so that one's softmax runs beside
//      another's products. The weights stay in registers. Blocks stay resident and walk over the tiles of rows.
//
// Parameters (macros): D = 64 | 128 | 192 | 256 numbers a head, of which USED, a multiple of 16, are multiplied (what a head has fewer is loaded as
//   zeros); BN keys a tile, a multiple of 16;
//   CONSUMERS = 2 | 3; STAGES tiles of keys, and of values, in flight; CAUSAL; TURNS; CAPPED; SINKS; HALF: float16, else bfloat16; PRODUCER_REGISTERS,
//   CONSUMER_REGISTERS: what setmaxnreg leaves and gives; WATCHDOG as in hopper.h.
// Shared memory: (64 CONSUMERS + 2 STAGES BN) D 2 bytes, at most 227 KB, and 1,024 to align it.
// `scores` and `values` of the products are written for these sizes by flash_hopper.py.
//
// A row sees keys below min(nk, row + offset + 1) where CAUSAL, else all nk; offset >= 0 and nk >= 1, so that each sees one at least. scale > 0.
// Bounds of the copies: strides of 16 bytes, heads of a multiple of eight numbers.
//
// NOTES (outcomes; add below, newest last)
//   Predicted for an H200 from FlashAttention 3's own figures: 560 to 640 TFLOP/s with heads of 128 (cuDNN 669 at 16,384).
//   Achieved on an H200 (benchmarks/results/attention_h200): right in 34 of 34 cases; 393 to 541 TFLOP/s with heads of 64, 523 to 714 with 128, 542 to
//   786 with 256 (of about 800 to 990 of products alone); causal 248 to 521, 351 to 655, 339 to 766. 1.00 to 1.23 times the fastest other program in 33,
//   0.95 in one (512 rows, causal, heads of 64); beside the least time that the library took in either of two runs 0.985 and more.
//   Turns at the tensor cores gain 3 to 14 % with heads of 64 and 128 (197 rows: nothing), and lose 6 to 15 % with 256, where the shapes leave them out.
//   A third tile in flight (heads of 64) gains nothing, 96 and 192 keys, 160 and 80 lose.
//   Tiles of 192 rows take 1.2 times what those of 128 take (heads of 64), and 176 keys 1.2 times what 128 take (heads of 128): 192 rows are taken where
//   they are filled (197 rows: 0.0566 ms beside 0.0459 of 128), 176 keys where nothing is causal (causal 128 is 1.09 to 1.21 times as fast).
//   Timed in turns with the others: 371 to 530, 494 to 669, 552 to 746; 1.10 times the fastest other in the mean, 1.03 to 1.29 in 29 of 34, 0.92 and
//   0.955 in two (512 causal rows with heads of 64; 197 rows), where a tile's loads, last scaling and stores run beside nothing.
//   With WATCHDOG it takes 0.9 to 3.5 times as long.
//   CAPPED, predicted: two more calls of the special unit for each exponential (16 a clock and multiprocessor), of which a tile's products hide some:
//   0.6 to 0.75 of the rate without. tanh.approx would be one, at 2^-11 of a score, which float32 scores of a program do not forgive. Not measured.
//   SINKS, predicted: no difference that can be measured.
//   Compiled for sm_90a nothing is spilled but 8 bytes of a thread in D = 64, three consumers, CAPPED.

#include "hopper.h"

constexpr int BM = 64 * CONSUMERS, PANELS = D / 64, SUMS = USED / 2, SCORES = BN / 2;
constexpr u32 PANEL_Q = BM * 128, PANEL = BN * 128, Q_BYTES = PANELS * PANEL_Q, TILE_BYTES = PANELS * PANEL;
constexpr int CONSUMER_WARPS = 4 * CONSUMERS;
constexpr bool WIDE = D > 128;  // the sums so far are scaled beside the product with keys: without turns nothing else runs beside that
#define NEVER __int_as_float(0xFF800000)  // -Inf

// ---- the walk over tiles of rows ------------------------------------------------------------------------------------------------------------------

struct Sizes {
    int heads, group, nq, nk, offset, blocks, tiles, together, d;  // group: query heads a key head; together: (batch, head)s that are walked at once
};

struct Tile {
    int batch, head, row, count;  // first row; tiles of keys that one of its rows sees
};

__device__ __forceinline__ int seen_by(int row, const Sizes& of) { return CAUSAL ? min(of.nk, row + of.offset + 1) : of.nk; }

// The `index`-th tile. Causal: of some (batch, head)s, whose keys fit into L2, the longest rows first.
__device__ __forceinline__ Tile tile_of(int index, const Sizes& of) {
    int block = index % of.blocks, which = index / of.blocks;
    if (CAUSAL) {
        const int section = index / (of.together * of.blocks), rest = index - section * of.together * of.blocks;
        const int members = min(of.together, of.tiles / of.blocks - section * of.together);
        block = of.blocks - 1 - rest / members;
        which = section * of.together + rest % members;
    }
    const int row = block * BM, last = min(row + BM, of.nq) - 1;
    return {which / of.heads, which % of.heads, row, (seen_by(last, of) + BN - 1) / BN};
}

// The next tile of this block: forward in one round, backward in the next, so that the longest and the shortest meet.
__device__ __forceinline__ int turn_of(int round) {
    const int blocks = gridDim.x, at = blockIdx.x;
    return round * blocks + (round % 2 ? blocks - 1 - at : at);
}

// ---- the ring of tiles of keys, or of values ------------------------------------------------------------------------------------------------------

struct Ring {
    u32 data, full, empty;
    u32 slot, parity;

    __device__ __forceinline__ void next() {
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
    __device__ __forceinline__ u32 address() const { return data + slot * TILE_BYTES; }
    __device__ __forceinline__ void wait_full() const { barrier_wait(full + 8 * slot, parity); }
    __device__ __forceinline__ void release_slot(int lane) {
        release(empty + 8 * slot, lane);
        next();
    }
};

__device__ __forceinline__ void load_tile(Ring& ring, const TensorMap& map, int row, int head, int batch) {
    barrier_wait(ring.empty + 8 * ring.slot, ring.parity ^ 1);
    const u32 full = ring.full + 8 * ring.slot;
    barrier_expect(full, TILE_BYTES);
#pragma unroll
    for (int panel = 0; panel < PANELS; ++panel) load(ring.address() + panel * PANEL, map, 64 * panel, row, head, batch, full);
    ring.next();
}

// ---- softmax --------------------------------------------------------------------------------------------------------------------------------------
// A thread holds two rows, `half` 0 and 1, eight apart: element i of scores or sums is row (i / 2) % 2, column 8 (i / 4) + 2 (lane % 4) + i % 2.

__device__ __forceinline__ float power_of_two(float x) {
    float y;
#ifdef __CUDA_ARCH__
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    y = exp2f(x);
#endif
    return y;
}

__device__ __forceinline__ float inverse(float x) {
    float y;
#ifdef __CUDA_ARCH__
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
    y = 1.0f / x;
#endif
    return y;
}

// c tanh(scale s / c) is c - 2 c / (exp2(bend s) + 1) with bend = 2 scale log2(e) / c. A softmax sees no constant: what is kept is -1 / (..), from -1 to
// 0, and the exponentials' scale is 2 c log2(e). Its error is 2^-23 or so, 2^-22 c of a score. -inverse(1 + ..)
// is the same, and spills 40 bytes of a thread where three consumers share the registers.
__device__ __forceinline__ void bent(float (&s)[SCORES], float bend) {
#pragma unroll
    for (int i = 0; i < SCORES; ++i) s[i] = inverse(-1.0f - power_of_two(s[i] * bend));
}

__device__ __forceinline__ void hide(float (&s)[SCORES], int row, int first_column, const Sizes& of) {  // what the thread's rows do not see
    const int left[2] = {seen_by(row, of) - first_column, seen_by(row + 8, of) - first_column};  // columns from the thread's first that they do
#pragma unroll
    for (int i = 0; i < SCORES; ++i)
        if (i / 4 * 8 + i % 2 >= left[i / 2 % 2]) s[i] = NEVER;
}

// Turn scores into weights exp2(scale (s - top)), and bring `top` and `sum` up to date; the sums so far are to be multiplied with `decay`. Both rows
// step by step, so that the shuffles of one run beside the other's.
__device__ __forceinline__ void soften(float (&s)[SCORES], float (&top)[2], float (&sum)[2], float (&decay)[2], float scale) {
    float largest[2] = {top[0], top[1]}, shift[2], more[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < SCORES; i += 2) largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], fmaxf(s[i], s[i + 1]));
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
#pragma unroll
        for (int half = 0; half < 2; ++half) largest[half] = fmaxf(largest[half], __shfl_xor_sync(0xFFFFFFFFu, largest[half], step));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        shift[half] = largest[half] == NEVER ? 0.0f : __fmul_rn(largest[half], scale);  // a row that has seen none of its keys yet
        decay[half] = power_of_two(__fmul_rn(top[half], scale) - shift[half]);          // 1 where it stays: a fused product would leave its rounding
        top[half] = largest[half];
    }
#pragma unroll
    for (int i = 0; i < SCORES; i += 2) {
        const int half = i / 2 % 2;
        s[i] = power_of_two(s[i] * scale - shift[half]);
        s[i + 1] = power_of_two(s[i + 1] * scale - shift[half]);
        more[half] += s[i] + s[i + 1];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) sum[half] = sum[half] * decay[half] + more[half];
}

__device__ __forceinline__ u32 packed(float low, float high) {
    u32 both;
#ifdef __CUDA_ARCH__
#if HALF
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#endif
#else
    both = packed_on_cpu(low, high);
#endif
    return both;
}

// ---- products -------------------------------------------------------------------------------------------------------------------------------------

// s = 64 rows of q times a tile of keys, from shared memory.
__device__ __forceinline__ void multiply_keys(float (&s)[SCORES], u32 q, u32 keys) {
#pragma unroll
    for (int panel = 0; panel < PANELS; ++panel) {
        const u64 a = descriptor(q + panel * PANEL_Q), b = descriptor(keys + panel * PANEL);
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // 16 terms, 32 bytes: 2 in units of a descriptor
            if (panel + i == 0)
                scores<0>(s, a, b);
            else if (64 * panel + 16 * i < USED)
                scores<1>(s, a + 2 * i, b + 2 * i);
        }
    }
}

// y += weights, in registers, times a tile of values.
__device__ __forceinline__ void multiply_values(float (&y)[SUMS], const u32 (&w)[SCORES / 2], u32 values_at) {
    const u64 b = descriptor_of_terms(values_at, PANEL);
#pragma unroll
    for (int i = 0; i < BN / 16; ++i) values(y, w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3], b + 128 * i);  // 16 rows of 128 bytes
}

__device__ __forceinline__ void scaled(float (&y)[SUMS], const float (&decay)[2]) {
#pragma unroll
    for (int i = 0; i < SUMS; ++i) y[i] *= decay[i / 2 % 2];
}

__device__ __forceinline__ void keep(u32 (&w)[SCORES / 2], const float (&s)[SCORES]) {
#pragma unroll
    for (int i = 0; i < SCORES / 2; ++i) w[i] = packed(s[2 * i], s[2 * i + 1]);
}

// ---- turns at the tensor cores --------------------------------------------------------------------------------------------------------------------
// Barrier 1 + g lets warpgroup g in when all others have passed it.

__device__ __forceinline__ void let_others(int group) {
#pragma unroll
    for (int other = 1; other < CONSUMERS; ++other) pass(1 + (group + other) % CONSUMERS, 128 * CONSUMERS);
}

__device__ __forceinline__ void begin_turns(int group) {  // as if all had passed the first round's barriers of those before them
    for (int before = 0; before < group; ++before) pass(1 + before, 128 * CONSUMERS);
}

// The ones left over. A group lets those after it in once they have let it in, after their last turn: before that it would take their last turn's place.
__device__ __forceinline__ void end_turns(int group) {
    meet(1 + group, 128 * CONSUMERS);
    for (int after = group + 1; after < CONSUMERS; ++after) pass(1 + after, 128 * CONSUMERS);
}

// ---- results --------------------------------------------------------------------------------------------------------------------------------------

struct Out {
    char* y;
    long long of_batch, of_head, of_row;  // elements of two bytes
};

// Four numbers a thread: of two groups of eight columns, even lanes take the first and odd lanes the second.
__device__ __forceinline__ void store(const float (&y)[SUMS], const float (&factor)[2], const Out& out, const Tile& tile, int row, const Sizes& of, int lane) {
    const bool odd = lane % 2;
    const int column = odd ? 8 + 2 * (lane % 4 - 1) : 2 * (lane % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int at = row + 8 * half;
        char* to = out.y + 2 * (tile.batch * out.of_batch + tile.head * out.of_head + at * out.of_row + column);
#pragma unroll
        for (int i = 2 * half; i < SUMS; i += 8) {
            const u32 first = packed(y[i] * factor[half], y[i + 1] * factor[half]), second = packed(y[i + 4] * factor[half], y[i + 5] * factor[half]);
            const u32 got = __shfl_xor_sync(0xFFFFFFFFu, odd ? first : second, 1);
            if (at < of.nq && i / 8 * 16 + column < of.d) *(uint2*)(to + i / 8 * 32) = odd ? make_uint2(got, second) : make_uint2(first, got);
        }
    }
}

// ---- sinks ----------------------------------------------------------------------------------------------------------------------------------------

struct Sinks {
    const float* at;  // log2(e) times those of all rows, less a cap
    long long of_batch, of_head, of_row;

    __device__ __forceinline__ float of(const Tile& tile, int row, const Sizes& sizes) const {
        return row < sizes.nq ? at[tile.batch * of_batch + tile.head * of_head + row * of_row] : 0.0f;
    }
};

// ---- the kernel -----------------------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void produce(const TensorMap& q_map, const TensorMap& k_map, const TensorMap& v_map, u32 q, u32 q_full, u32 q_empty, Ring keys,
                                        Ring vals, const Sizes& of) {
    u32 parity = 0;
    for (int round = 0; turn_of(round) < of.tiles; ++round) {
        const Tile tile = tile_of(turn_of(round), of);
        const int shared = tile.head / of.group;
        load_tile(keys, k_map, (tile.count - 1) * BN, shared, tile.batch);  // while the tile before is still multiplied
        barrier_wait(q_empty, parity ^ 1);
        barrier_expect(q_full, Q_BYTES);
#pragma unroll
        for (int panel = 0; panel < PANELS; ++panel) load(q + panel * PANEL_Q, q_map, 64 * panel, tile.row, tile.head, tile.batch, q_full);
        parity ^= 1;
        for (int n = tile.count - 1; n >= 0; --n) {
            if (n > 0) load_tile(keys, k_map, (n - 1) * BN, shared, tile.batch);
            load_tile(vals, v_map, n * BN, shared, tile.batch);
        }
    }
}

__device__ __forceinline__ void consume(u32 q, u32 q_full, u32 q_empty, Ring keys, Ring vals, const Sizes& of, const Out& out, const Sinks& sinks,
                                        float scale, float bend, int group) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const u32 mine = q + group * 64 * 128;
    u32 parity = 0;
    if (TURNS) begin_turns(group);
    for (int round = 0; turn_of(round) < of.tiles; ++round) {
        const Tile tile = tile_of(turn_of(round), of);
        const int row = tile.row + 64 * group + 16 * warp + lane / 4;
        const int whole = seen_by(tile.row + 64 * group, of) / BN;  // tiles of keys that all rows of this warpgroup see whole
        float s[SCORES], y[SUMS], top[2] = {NEVER, NEVER}, sum[2] = {0.0f, 0.0f}, decay[2];
        u32 w[SCORES / 2];
#pragma unroll
        for (int i = 0; i < SUMS; ++i) y[i] = 0.0f;

        int n = tile.count - 1;
        barrier_wait(q_full, parity);
        parity ^= 1;
        keys.wait_full();
        begin_products();
        multiply_keys(s, mine, keys.address());
        commit_products();
        wait_products<0>();
        settle(s);
        keys.release_slot(lane);
        if (n == 0) release(q_empty, lane);
        if (CAPPED) bent(s, bend);
        if (n >= whole) hide(s, row, n * BN + lane % 4 * 2, of);
        soften(s, top, sum, decay, scale);

        // The wait for the products with values stands at the loop's top: in one block with the softmax ptxas moves it before that.
#pragma unroll 1
        while (true) {
            wait_products<0>();
            settle(y);
            if (n < tile.count - 1) vals.release_slot(lane);
            keep(w, s);
            if (!WIDE) scaled(y, decay);
            if (--n < 0) break;
            keys.wait_full();
            if (TURNS) meet(1 + group, 128 * CONSUMERS);
            begin_products();
            multiply_keys(s, mine, keys.address());
            commit_products();
            if (WIDE) scaled(y, decay);
            vals.wait_full();
            begin_products();
            multiply_values(y, w, vals.address());
            commit_products();
            if (TURNS) let_others(group);
            wait_products<1>();
            settle(s);
            keys.release_slot(lane);
            if (n == 0) release(q_empty, lane);
            if (CAPPED) bent(s, bend);
            if (n >= whole) hide(s, row, n * BN + lane % 4 * 2, of);
            soften(s, top, sum, decay, scale);
        }

        if (WIDE) scaled(y, decay);
        vals.wait_full();
        begin_products();
        multiply_values(y, w, vals.address());
        commit_products();
        float factor[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = sum[half] + __shfl_xor_sync(0xFFFFFFFFu, sum[half], 1);
            total += __shfl_xor_sync(0xFFFFFFFFu, total, 2);
            if (SINKS) {  // read here, beside the product: two registers fewer in the loop. Infinite if far above all scores: the row is 0 then.
                total += power_of_two(sinks.of(tile, row + 8 * half, of) - __fmul_rn(top[half], scale));
            }
            factor[half] = 1.0f / total;
        }
        wait_products<0>();
        settle(y);
        vals.release_slot(lane);
        store(y, factor, out, tile, row, of, lane);
    }
    if (TURNS) end_turns(group);
}

extern "C" __global__ void __launch_bounds__(128 * (1 + CONSUMERS), 1)
    flash_hopper(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map, char* y,
                 long long y_batch, long long y_head, long long y_row, const float* sinks, long long s_batch, long long s_head, long long s_row,
                 float scale, float bend, int heads, int group, int nq, int nk, int offset, int blocks, int tiles,
                 int together, int d) {
    extern __shared__ __align__(1024) char storage[];
    __shared__ __align__(8) u64 barriers[2 + 4 * STAGES];
    // From one lane: so that the compiler knows them to be the same in a warp, and keeps them and all descriptors in uniform registers.
    const u32 q = __shfl_sync(0xFFFFFFFFu, (shared_address(storage) + 1023) & ~1023u, 0);
    const u32 q_full = __shfl_sync(0xFFFFFFFFu, shared_address(barriers), 0), q_empty = q_full + 8;
    const u32 k_full = q_full + 16, v_full = k_full + 16 * STAGES;
    const Ring keys = {q + Q_BYTES, k_full, k_full + 8 * STAGES, 0, 0};
    const Ring vals = {q + Q_BYTES + STAGES * TILE_BYTES, v_full, v_full + 8 * STAGES, 0, 0};
    if (threadIdx.x == 0) {
        fetch_map(q_map);
        fetch_map(k_map);
        fetch_map(v_map);
        barrier_init(q_full, 1);
        barrier_init(q_empty, CONSUMER_WARPS);
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(keys.full + 8 * i, 1);
            barrier_init(keys.empty + 8 * i, CONSUMER_WARPS);
            barrier_init(vals.full + 8 * i, 1);
            barrier_init(vals.empty + 8 * i, CONSUMER_WARPS);
        }
        barriers_begin();
    }
    __syncthreads();
    const Sizes of = {heads, group, nq, nk, offset, blocks, tiles, together, d};
    if (threadIdx.x < 128) {
        fewer_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(q_map, k_map, v_map, q, q_full, q_empty, keys, vals, of);
        __syncwarp();
    } else {
        more_registers<CONSUMER_REGISTERS>();
        consume(q, q_full, q_empty, keys, vals, of, {y, y_batch, y_head, y_row}, {sinks, s_batch, s_head, s_row}, scale, bend,
                __shfl_sync(0xFFFFFFFFu, (int)threadIdx.x / 128, 0) - 1);
    }
}
