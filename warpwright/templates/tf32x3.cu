// Float32 matrix product on TF32 tensor cores with float32's error: C[m, n] = sum over k of A[m, k] * B[k, n], or batches of such products.
//
// Each number is cut into two of TF32, high + low, and the three products that matter are formed: low * high, high * low, high * high; low * low is
// below float32's last bit (Ootomo and Yokota, 2022, doi:10.1177/10943420221090256). Tensor cores cut off what they add up, which pulls a long sum
// towards zero: they sum over STEP terms alone, the small products first, and those sums are added in float32.
//
// What TF32 cannot hold is done again in plain float32, a tile of the result at a time: tiles with a result that is Inf or NaN (an infinite factor has
// no low part), and tiles that are small themselves, below 2^-60, of factors below 2^-100, whose low parts are lost.
//
// Ladder
//   1. A tile of 128 x 128 in registers, 64 x 32 a warp, operands through registers into two halves of shared memory (this kernel).
//
// Parameters (macros): WM, WN: warps down and across, a tile has 64 WM x 32 WN results; STEP = 16 | 32 terms a slice; A_TERMS, B_TERMS: whether terms
// are contiguous in memory (else rows of A, columns of B are). `splits` cuts k: C then is [splits, batches, m, n], to be added by the caller.
// `pitch`: elements from a row of A (or a term, where rows are contiguous) to the next; `quick`: 16 bytes may be read at once.
//
// Least work: 2 m n k operations, three times as many on the tensor cores. By mma.sync an H200 has half of wgmma's 495 TFLOP/s at best: 80 of float32.
//
// NOTES (outcomes; add below, newest last)
//   H200, 2026-11-30 (results/tf32x3_h200): with branches around the loads 44 TFLOP/s at 4,096 cubed, without 50 to 58 (predicted 100, from a figure
//   that was misread), cuBLAS in float32 50. STEP=32 gains 3 to 5 % where both operands' terms are contiguous and loses 3 to 8 % elsewhere. Of few
//   terms the time is the arithmetic and then the writing: a block that writes does not multiply. Next: wgmma, one operand from registers.

typedef unsigned int u32;

constexpr int ROWS = 64 * WM, COLUMNS = 32 * WN, THREADS = 32 * WM * WN;
constexpr u32 SMALL_FACTOR = (127 - 100) << 23, SMALL_RESULT = (127 - 60) << 23;  // as bits of a float32: 2^-100 and 2^-60

#include "quads.h"

// One operand's slices.
template <int SIZE, bool TERMS>
struct Slice : Quads<SIZE, TERMS, 8> {
    using Quads<SIZE, TERMS, 8>::PITCH;

    static __device__ __forceinline__ int place(int row, int term) { return TERMS ? row * PITCH + term : term * PITCH + row; }

    // Whether one of a thread's share of rows [row, row + SIZE) is so small that its low part is lost. Zero is not.
    static __device__ bool small(const float* from, long long pitch, int row, int rows, int term, int terms) {
        bool found = false;
        const int high = min(rows - row, SIZE);
        for (int i = threadIdx.x; i < high * (terms - term); i += THREADS) {
            const int r = row + (TERMS ? i / (terms - term) : i % high), t = term + (TERMS ? i % (terms - term) : i / high);
            found |= (__float_as_uint(from[TERMS ? r * pitch + t : t * pitch + r]) & 0x7fffffffu) - 1 < SMALL_FACTOR - 1;
        }
        return found;
    }
};

// c += a * b: 16 x 8 results of 8 terms, which a warp holds
__device__ __forceinline__ void multiply(float* c, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Both to about the nearest number of TF32, whose last 13 bits the tensor core leaves out. The low part becomes larger by 2^-11.5, 0.35 to 0.71 of a
// place: what is cut off is half a place on average. (To add half a place to its bits as well would make zero of a NaN that is all ones, which is what
// the device's own arithmetic gives: in the high part it does so.)
__device__ __forceinline__ void halves(float value, u32& high, u32& low) {
    high = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;
    low = __float_as_uint((value - __uint_as_float(high)) * 1.0003453f);
}

typedef Slice<ROWS, A_TERMS> Left;
typedef Slice<COLUMNS, B_TERMS> Right;

// Form a thread's part of the tile at (top, side).
template <bool WHOLE>
__device__ __forceinline__ void form(float (&sum)[4][4][4], float* shared, const float* a, const float* b, long long a_pitch, long long b_pitch, int top,
                                     int side, int m, int n, int first, int last) {
    constexpr int HALF = Left::FLOATS + Right::FLOATS;
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, lane = threadIdx.x % 4;  // of eight rows, of four terms
    const int down = warp / WN * 64, across = warp % WN * 32;
    float4 left_own[Left::TURNS], right_own[Right::TURNS];
#pragma unroll
    for (int i = 0; i < 64; ++i) sum[i / 16][i / 4 % 4][i % 4] = 0.0f;
    Left::template read<WHOLE>(left_own, a, a_pitch, top, m, first, last);
    Right::template read<WHOLE>(right_own, b, b_pitch, side, n, first, last);
    Left::write(shared, left_own);
    Right::write(shared + Left::FLOATS, right_own);
    __syncthreads();
    for (int term = first, half = 0; term < last; term += STEP, half ^= 1) {
        const float *left = shared + half * HALF, *right = left + Left::FLOATS;
        if (term + STEP < last) {
            Left::template read<WHOLE>(left_own, a, a_pitch, top, m, term + STEP, last);
            Right::template read<WHOLE>(right_own, b, b_pitch, side, n, term + STEP, last);
        }
        float part[4][4][4];
#pragma unroll
        for (int i = 0; i < 64; ++i) part[i / 16][i / 4 % 4][i % 4] = 0.0f;
#pragma unroll
        for (int at = 0; at < STEP; at += 8) {
            u32 b_high[4][2], b_low[4][2];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) halves(right[Right::place(across + 8 * j + group, at + lane + 4 * e)], b_high[j][e], b_low[j][e]);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                u32 a_high[4], a_low[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) halves(left[Left::place(down + 16 * i + group + e % 2 * 8, at + lane + e / 2 * 4)], a_high[e], a_low[e]);
#pragma unroll
                for (int j = 0; j < 4; ++j) multiply(part[i][j], a_low, b_high[j]);
#pragma unroll
                for (int j = 0; j < 4; ++j) multiply(part[i][j], a_high, b_low[j]);
#pragma unroll
                for (int j = 0; j < 4; ++j) multiply(part[i][j], a_high, b_high[j]);
            }
        }
#pragma unroll
        for (int i = 0; i < 64; ++i) sum[i / 16][i / 4 % 4][i % 4] += part[i / 16][i / 4 % 4][i % 4];
        if (term + STEP < last) {
            float* to = shared + (half ^ 1) * HALF;
            Left::write(to, left_own);
            Right::write(to + Left::FLOATS, right_own);
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tf32x3(const float* a, const float* b, float* c, long long a_pitch, long long b_pitch, long long a_batch, long long b_batch, int m, int n, int k,
           int batches, int splits, int each, int quick) {
    constexpr int GROUP = 8;
    extern __shared__ __align__(16) char storage[];
    __shared__ int small, again;
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, lane = threadIdx.x % 4;
    const int down = warp / WN * 64, across = warp % WN * 32;

    // Which tile: eight rows of tiles are walked together, for L2
    const int high = (m + ROWS - 1) / ROWS, wide = (n + COLUMNS - 1) / COLUMNS, tile = blockIdx.x % (high * wide), which = blockIdx.x / (high * wide);
    const int band = tile / (GROUP * wide), tall = min(high - band * GROUP, GROUP);
    const int top = (band * GROUP + tile % (GROUP * wide) % tall) * ROWS, side = tile % (GROUP * wide) / tall * COLUMNS;
    const int batch = which % batches, split = which / batches, first = split * each, last = min(first + each, k);
    a += batch * a_batch, b += batch * b_batch, c += ((long long)split * batches + batch) * m * n;
    if (threadIdx.x == 0) small = again = 0;

    float sum[4][4][4];
    if (quick && top + ROWS <= m && side + COLUMNS <= n && (last - first) % STEP == 0) {
        form<true>(sum, (float*)storage, a, b, a_pitch, b_pitch, top, side, m, n, first, last);
    } else {
        form<false>(sum, (float*)storage, a, b, a_pitch, b_pitch, top, side, m, n, first, last);
    }

    // Is there what TF32 cannot hold?
    bool wrong = false, tiny = false;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        const int r = top + down + i / 16 * 16 + group + i % 4 / 2 * 8, s = side + across + i / 4 % 4 * 8 + 2 * lane + i % 2;
        const u32 bits = __float_as_uint(sum[i / 16][i / 4 % 4][i % 4]) & 0x7fffffffu;
        wrong |= bits >= 0x7f800000u, tiny |= bits < SMALL_RESULT && r < m && s < n;
    }
    if (wrong) again = 1;
    if (tiny) small = 1;
    __syncthreads();
    if (small && !again && (Left::small(a, a_pitch, top, m, first, last) || Right::small(b, b_pitch, side, n, first, last))) small = 2;
    __syncthreads();
    if (again || small == 2) {
        for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
            const int r = top + i / COLUMNS, s = side + i % COLUMNS;
            if (r >= m || s >= n) continue;
            double total = 0;
            for (int from = first; from < last; from += 32) {  // float64 above 32 terms: a long float32 sum would err more than cuBLAS
                float part = 0.0f;
                for (int term = from; term < min(from + 32, last); ++term) {
                    part = fmaf(a[A_TERMS ? r * a_pitch + term : term * a_pitch + r], b[B_TERMS ? s * b_pitch + term : term * b_pitch + s], part);
                }
                total += (double)part;
            }
            c[(long long)r * n + s] = (float)total;
        }
        return;
    }
    const bool pairs = n % 2 == 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int r = top + down + 16 * i + group + 8 * half, s = side + across + 8 * j + 2 * lane;
                float* const to = c + (long long)r * n + s;
                if (r < m && s + 1 < n && pairs) {
                    *(float2*)to = make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
                } else if (r < m) {
                    if (s < n) to[0] = sum[i][j][2 * half];
                    if (s + 1 < n) to[1] = sum[i][j][2 * half + 1];
                }
            }
        }
    }
}
