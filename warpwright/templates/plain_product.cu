// Float32 matrix product by plain sums, for products that take a GPU less time than a host needs to call cuBLAS: C[m, n] = sum over k of A[m, k] * B[k, n].
//
// A block makes a tile of C. Its threads are several groups, each of which sums its share of the terms of every slice; the groups' sums are added at the
// end. With R = 4 a slice's terms are summed afresh and then added, so that a sum of k terms is one of STEP / GROUPS, of k / STEP and of GROUPS in turn;
// with R = 8 one of k / GROUPS and of GROUPS. Either errs less than the chain of k additions that a simple kernel has.
//
// Ladder
//   1. Operands through registers into one slice of shared memory, as they lie in global memory; the next slice is read while this one is multiplied.
//   2. R = 8 by R = 8 results a thread, 16 threads a group: half the reading of shared memory for each multiply-add.
//
// Parameters (macros): R: 4 | 8 results of a thread along each side; SIDE: 8 | 4 threads of a group along each side, a tile has R SIDE rows and columns;
// GROUPS: 4 | 8 | 16 groups of threads; STEP: 64 | 128 terms a slice, a multiple of 4 GROUPS; A_TERMS, B_TERMS: whether terms are contiguous in memory (else
// rows of A, columns of B are). `pitch`: elements from a row of A (or a term, where rows are contiguous) to the next; `quick`: 16 bytes may be read at once.
//
// Least work: m n k multiply-adds, of which an H200 does 33 a picosecond (132 multiprocessors, 128 each, 1.98 GHz).
//
// NOTES (outcomes; add below, newest last)
//   H200, 2026-11-30 (results/int8_product_h200): the GPU alone takes 2.3 us at 64 cubed, 3.2 at 128, 5.1 at 256, 10 at 384, 13.5 at 512 and 15 at
//   64 or 128 x 1,024 x 1,024 (predicted 2.5, 2.7, 4, 7, 9, 9.5), 93 at 1,024 cubed: 0.74 us a slice of a tile also where two blocks share a
//   multiprocessor, of which the multiply-adds are 0.26. Reading shared memory bounds it: rung 2, not timed when this was written.
//   A tile of 128 x 128, 8 x 8 results of 256 threads, one group, for large results of few terms: 2.33 and 2.46 ms at 32,768 x 32,768 x 32 (cuBLAS 2.55
//   and 2.59), 4.17 and 4.29 at 64 terms (4.26 and 4.08), 0.99 of cuBLAS and less at 4,096 and 8,192. Not kept.

constexpr int TILE = R * SIDE, THREADS = SIDE * SIDE * GROUPS, SHARE = STEP / GROUPS;
static_assert(SHARE % 4 == 0 && TILE * STEP / 4 % THREADS == 0, "a group takes whole quads of terms, a thread whole quads of a slice");

#include "quads.h"

// One operand's slice.
template <bool TERMS>
struct Slice : Quads<TILE, TERMS, 4> {
    using Quads<TILE, TERMS, 4>::PITCH;

    // Which row of the tile is a thread's number i.
    static __device__ __forceinline__ int row(int thread, int i) { return TERMS ? thread + SIDE * i : 4 * (thread + i / 4 * SIDE) + i % 4; }

    // Four terms of a thread's R rows, from `term` of the slice on.
    static __device__ __forceinline__ void take(float (&own)[R][4], const float* slice, int thread, int term) {
#pragma unroll
        for (int i = 0; i < R; ++i) {
            if (TERMS) {
                const float4 quad = *(const float4*)(slice + row(thread, i) * PITCH + term);
                own[i][0] = quad.x, own[i][1] = quad.y, own[i][2] = quad.z, own[i][3] = quad.w;
            } else {  // of term + i % 4, rows i / 4 * 4 to the next multiple of four
                const float4 quad = *(const float4*)(slice + (term + i % 4) * PITCH + row(thread, i / 4 * 4));
                const int first = i / 4 * 4;
                own[first][i % 4] = quad.x, own[first + 1][i % 4] = quad.y, own[first + 2][i % 4] = quad.z, own[first + 3][i % 4] = quad.w;
            }
        }
    }
};

typedef Slice<A_TERMS> Left;
typedef Slice<B_TERMS> Right;

// Form a thread's results of the tile at (top, side), of its group's share of the terms.
template <bool WHOLE>
__device__ __forceinline__ void form(float (&sum)[R][R], float* left, const float* a, const float* b, long long a_pitch, long long b_pitch, int top,
                                     int side, int m, int n, int k) {
    float* const right = left + Left::FLOATS;
    const int group = threadIdx.x / (SIDE * SIDE), down = threadIdx.x / SIDE % SIDE, across = threadIdx.x % SIDE;
    const int share = (group * 2 % GROUPS + group / (GROUPS / 2)) * SHARE;  // the two groups of a warp read banks that are 16 apart
    float4 left_own[Left::TURNS], right_own[Right::TURNS];
#pragma unroll
    for (int i = 0; i < R * R; ++i) sum[i / R][i % R] = 0.0f;
    Left::template read<WHOLE>(left_own, a, a_pitch, top, m, 0, k);
    Right::template read<WHOLE>(right_own, b, b_pitch, side, n, 0, k);
    for (int term = 0; term < k; term += STEP) {
        Left::write(left, left_own);
        Right::write(right, right_own);
        __syncthreads();
        if (term + STEP < k) {
            Left::template read<WHOLE>(left_own, a, a_pitch, top, m, term + STEP, k);
            Right::template read<WHOLE>(right_own, b, b_pitch, side, n, term + STEP, k);
        }
        float afresh[R][R];
        float(&part)[R][R] = R == 4 ? afresh : sum;  // eight by eight twice would not fit into the registers
        if (R == 4) {
#pragma unroll
            for (int i = 0; i < R * R; ++i) part[i / R][i % R] = 0.0f;
        }
#pragma unroll
        for (int at = 0; at < SHARE; at += 4) {
            float x[R][4], y[R][4];
            Left::take(x, left, down, share + at);
            Right::take(y, right, across, share + at);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
#pragma unroll
                for (int i = 0; i < R * R; ++i) part[i / R][i % R] = fmaf(x[i / R][e], y[i % R][e], part[i / R][i % R]);
            }
        }
        if (R == 4) {
#pragma unroll
            for (int i = 0; i < R * R; ++i) sum[i / R][i % R] += part[i / R][i % R];
        }
        __syncthreads();
    }
}

// Write four results of a row, as many of them as there are.
__device__ __forceinline__ void store(float* c, float4 quad, int row, int column, int m, int n) {
    float* const to = c + (long long)row * n + column;
    if (row >= m) return;
    if (n % 4 == 0 && column < n) {
        *(float4*)to = quad;
        return;
    }
    if (column < n) to[0] = quad.x;
    if (column + 1 < n) to[1] = quad.y;
    if (column + 2 < n) to[2] = quad.z;
    if (column + 3 < n) to[3] = quad.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, R == 4 ? 512 / THREADS : 1)
    plain_product(const float* a, const float* b, float* c, long long a_pitch, long long b_pitch, int m, int n, int k, int quick) {
    extern __shared__ __align__(16) float storage[];
    const int wide = (n + TILE - 1) / TILE, top = (int)blockIdx.x / wide * TILE, side = (int)blockIdx.x % wide * TILE;
    const int group = threadIdx.x / (SIDE * SIDE), down = threadIdx.x / SIDE % SIDE, across = threadIdx.x % SIDE;
    float sum[R][R];
    if (quick && top + TILE <= m && side + TILE <= n && k % STEP == 0) {
        form<true>(sum, storage, a, b, a_pitch, b_pitch, top, side, m, n, k);
    } else {
        form<false>(sum, storage, a, b, a_pitch, b_pitch, top, side, m, n, k);
    }
#pragma unroll
    for (int i = 0; i < R * R; ++i) storage[(group * TILE + Left::row(down, i / R)) * TILE + Right::row(across, i % R)] = sum[i / R][i % R];
    __syncthreads();
    for (int quad = threadIdx.x; quad < TILE * TILE / 4; quad += THREADS) {
        float4 total = *(const float4*)(storage + 4 * quad);
        for (int other = 1; other < GROUPS; ++other) {
            const float4 more = *(const float4*)(storage + other * TILE * TILE + 4 * quad);
            total.x += more.x, total.y += more.y, total.z += more.z, total.w += more.w;
        }
        store(c, total, top + 4 * quad / TILE, side + 4 * quad % TILE, m, n);
    }
}
