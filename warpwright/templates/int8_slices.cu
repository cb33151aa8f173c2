// The passes around the product of INT8 slices (int8_product.cu): cut rows into signed bytes, describe them, add slices where they are needed, and work
// out plainly what has Inf or NaN in it. Plain CUDA C++: it also runs on a CPU through warpwright.domains.transpile.
//
// A row is scaled by s = (1 + j / 16) 2^p, the largest such number with s * max|x| < 127.49, and rounded to w = s * x * 2^32. The short mantissa keeps
// whole numbers exact and wastes at most 6 % of the range, where a power of two wastes up to half. The bytes of w + 0x80808080 are the slices: the top
// one as it is, the others less 128, so each lies in [-128, 127] and w = sum of q[i] 2^(8 (4 - i)).
//
// What the last slices hold is left out of most products. It is rounded up at ties and otherwise by 2^-9 of a step too often, and numbers on a grid
// (torch.rand, a layer's initial weights) tie often: a product of weights of either sign with positive values then errs to one side, which the sum of
// its rows shows. So element k of both sides is negated where k has an odd number of bits set: products stay, and such errors cancel over k.
//
// A matrix may be several, one after another (a batch, or the pieces of a long inner size); each then has a multiple of 128 rows, so that what is known
// of 128 rows is of one of them. Which 128 elements of 128 rows are all zero is known too: the product leaves those out. Each pass does both sides of a
// product in one launch; a side that is done already has no rows. Order: slice_rows or slice_columns, summarise, slice_more, the product, plain_rows.
// Traffic of the first: 4 bytes read (twice; the second time from L1 or L2) and 3 written an element.
//
// Parameters (macros): WARPS a row: 1 for short rows, 8 for long ones; 256 threads a block (slice_columns: 512).
//
// NOTES (outcomes; add below)
//   H200, 2026-11-22, one side a launch, a launch that clears `done`, launches packed argument by argument: 52 us for 4096 x 4096 (42 for 1024 x 1024:
//   time of the host), 163 us for 8192 x 8192 (2.9 TB/s).

#include "int8_level.h"
#include "int8_suspect.h"

typedef unsigned int u32;
typedef long long i64;

constexpr int THREADS = 32 * WARPS, ROWS = 256 / THREADS;

struct Matrix {  // `rows` rows of k elements, and the memory of their slices (the same layout as Layout in int8_product.py)
    const float* x;
    i64 batch_stride, row_stride, k_stride;  // one of the last two is 1
    signed char* slices;       // [5][rows][padded]: padded = k rounded up to 128, zeros from k on
    double* inverse;           // [rows]: 2^-8 / s
    float* stats;              // [rows][2]: nonzero elements / sum of squares, share of elements within 2^-10 of the largest; -1 for a row of zeros
    float* blocks;             // [rows / 128, rounded up][2]: alpha and share of 128 rows each (int8_level.h)
    float* worst;              // [4]: largest alpha of a block, least share of one, 1 where any row is flagged, 1 where a tile is suspect
    int* flags;                // [rows]: 1 where a row has Inf or NaN; its slices are zeros
    int* done;                 // [rows / 16, rounded up]: 1 where the last two slices are written
    float* norms;              // [rows]: of the scaled row
    float* floors;             // [rows / 128, rounded up]: int8_suspect.h
    u32* row_chunks;           // [rows][words]: bit j is set where 128 elements from 128 j on are not all zero; words = padded / 4,096, rounded up
    u32* chunks;               // [rows / 128, rounded up][words]: the same of 128 rows
    int rows, padded;
    int per, batches;  // rows = batches * per: several matrices one after another, each multiplied by that of the other side with its number
};

__device__ __forceinline__ const float* row_of(const Matrix& of, int row) { return of.x + row / of.per * of.batch_stride + row % of.per * of.row_stride; }

constexpr int MOST_WORDS = 6;  // of 24,576 elements

__device__ __forceinline__ int words_of(const Matrix& of) { return (of.padded + 4095) / 4096; }

__device__ __forceinline__ u32 magnitude(float x) { return __float_as_uint(x) & 0x7FFFFFFFu; }

__device__ __forceinline__ double short_mantissa(double x) { return __longlong_as_double(__double_as_longlong(x) & ~((1ll << 48) - 1)); }

__device__ __forceinline__ double scale_of(u32 top) {  // of a row whose largest magnitude has these bits
    if (top == 0 || top >= 0x7F800000u) return 1.0;
    return short_mantissa(127.49 / (double)__uint_as_float(top));
}

// w + 0x80808080. Adding 1.5 * 2^52 rounds to even and leaves w in the low bits: the conversion unit is four times slower.
__device__ __forceinline__ i64 fixed_point(float x, double scale) {
    return __double_as_longlong((double)x * scale * 4294967296.0 + 6755399441055744.0) - 0x4338000000000000ll + 0x80808080ll;
}

__device__ __forceinline__ float turned(float x, int k) { return __popc(k) & 1 ? -x : x; }

struct Counts {
    float square;
    int nonzero, large;
};

// Add the first three slices of one element to words at byte j, and what it counts.
__device__ __forceinline__ void slice(float x, double scale, float large, int j, u32 (&words)[3], Counts& counts) {
    const i64 w = fixed_point(x, scale);
    const u32 low = (u32)w ^ 0x80808080u;
    words[0] |= ((u32)(w >> 32) & 255u) << (8 * j);
    words[1] |= (low >> 24) << (8 * j);
    words[2] |= ((low >> 16) & 255u) << (8 * j);
    const float scaled = (float)((double)x * scale);
    counts.square += scaled * scaled;
    counts.nonzero += x != 0.0f;
    counts.large += x != 0.0f && fabsf(scaled) >= large;
}

__device__ __forceinline__ void describe(const Matrix& to, int row, int k, u32 top, double scale, Counts counts) {
    to.inverse[row] = 0.00390625 / scale;
    to.stats[2 * row] = counts.nonzero ? (float)counts.nonzero / counts.square : 0.0f;
    to.stats[2 * row + 1] = counts.nonzero ? (float)counts.large / (float)k : -1.0f;
    to.norms[row] = sqrtf(counts.square);
    to.flags[row] = top >= 0x7F800000u;
    if (row % 16 == 0) to.done[row / 16] = 0;
}

// Rows that are contiguous. Grid: blocks of ROWS rows of a, then of b.
extern "C" __global__ void __launch_bounds__(256) slice_rows(const Matrix a, const Matrix b, int k) {
    __shared__ u32 tops[8];
    __shared__ float squares[8];
    __shared__ int nonzeros[8], larges[8];
    __shared__ u32 seen[8][MOST_WORDS];
    const int a_count = (a.rows + ROWS - 1) / ROWS, block = blockIdx.x;
    const Matrix to = block < a_count ? a : b;
    const int t = threadIdx.x % THREADS, row = (block < a_count ? block : block - a_count) * ROWS + threadIdx.x / THREADS;
    const int warp = threadIdx.x / 32, first_warp = warp - warp % WARPS;
    const bool inside = row < to.rows;
    const float* from = row_of(to, inside ? row : 0);
    const bool wide = k % 4 == 0 && to.row_stride % 4 == 0 && to.batch_stride % 4 == 0 && ((unsigned long long)to.x & 15) == 0;

    u32 top = 0;
    if (inside && wide) {
        for (int i = 4 * t; i < k; i += 4 * THREADS) {
            const float4 v = *(const float4*)(from + i);
            top = max(max(max(top, magnitude(v.x)), max(magnitude(v.y), magnitude(v.z))), magnitude(v.w));
        }
    } else if (inside) {
        for (int i = t; i < k; i += THREADS) top = max(top, magnitude(from[i]));
    }
    for (int step = 16; step > 0; step /= 2) top = max(top, __shfl_xor_sync(0xFFFFFFFFu, top, step));
    if (threadIdx.x % 32 == 0) tops[warp] = top;
    __syncthreads();
    for (int i = 0; i < WARPS; ++i) top = max(top, tops[first_warp + i]);

    const bool finite = top < 0x7F800000u;
    const double scale = scale_of(top);
    const float large = (float)((double)__uint_as_float(finite ? top : 0) * scale) * (1.0f / 1024);  // a scale may exceed float
    const i64 plane = (i64)to.rows * to.padded;
    signed char* out = to.slices + (i64)(inside ? row : 0) * to.padded;
    Counts counts = {0, 0, 0};
    u32 chunks = 0;  // lane w holds word w; a warp takes 128 elements at a time
    for (int i = 4 * t; inside && i < to.padded; i += 4 * THREADS) {
        float v[4];
        if (wide && i < k) {
            const float4 four = *(const float4*)(from + i);
            v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
        } else {
            for (int j = 0; j < 4; ++j) v[j] = i + j < k ? from[i + j] : 0.0f;
        }
        u32 words[3] = {0, 0, 0};
        const int before = counts.nonzero, chunk = i / 128;
        for (int j = 0; j < 4; ++j) slice(finite ? turned(v[j], i + j) : 0.0f, scale, large, j, words, counts);
        for (int s = 0; s < 3; ++s) *(u32*)(out + s * plane + i) = words[s];
        const u32 bit = __any_sync(0xFFFFFFFFu, counts.nonzero > before) ? 1u << chunk % 32 : 0;
        if (threadIdx.x % 32 == chunk / 32) chunks |= bit;
    }
    if (threadIdx.x % 32 < MOST_WORDS) seen[warp][threadIdx.x % 32] = chunks;
    for (int step = 16; step > 0; step /= 2) {
        counts.square += __shfl_xor_sync(0xFFFFFFFFu, counts.square, step);
        counts.nonzero += __shfl_xor_sync(0xFFFFFFFFu, counts.nonzero, step);
        counts.large += __shfl_xor_sync(0xFFFFFFFFu, counts.large, step);
    }
    if (threadIdx.x % 32 == 0) {
        squares[warp] = counts.square;
        nonzeros[warp] = counts.nonzero;
        larges[warp] = counts.large;
    }
    __syncthreads();
    if (t < words_of(to) && inside) {
        for (int i = 1; i < WARPS; ++i) chunks |= seen[first_warp + i][t];
        to.row_chunks[row * words_of(to) + t] = chunks;
    }
    if (t != 0 || !inside) return;
    counts = {0, 0, 0};
    for (int i = 0; i < WARPS; ++i) {
        counts.square += squares[first_warp + i];
        counts.nonzero += nonzeros[first_warp + i];
        counts.large += larges[first_warp + i];
    }
    describe(to, row, k, top, scale, counts);
}

// A matrix whose rows lie across memory (row_stride 1), such as a weight stored [k, n]: transposed through shared memory, without a copy of it. Grid:
// blocks of 16 rows; 512 threads: 16 rows by 32 words of four elements.
extern "C" __global__ void __launch_bounds__(512) slice_columns(const Matrix to, int k) {
    __shared__ u32 tops[16], staged[48][33];
    __shared__ float squares[32][16];
    __shared__ int nonzeros[16], larges[16];
    __shared__ u32 seen[MOST_WORDS];  // by the 16 rows together
    const int c = threadIdx.x % 16, y = threadIdx.x / 16, first = blockIdx.x * 16, row = first + c;
    const bool inside = row < to.rows;
    const float* from = row_of(to, inside ? row : 0);
    if (y == 0) tops[c] = 0, nonzeros[c] = 0, larges[c] = 0;
    if (threadIdx.x < MOST_WORDS) seen[threadIdx.x] = 0;
    __syncthreads();
    u32 top = 0;
    for (int i = y; inside && i < k; i += 32) top = max(top, magnitude(from[i * to.k_stride]));
    atomicMax(&tops[c], top);
    __syncthreads();
    top = tops[c];

    const bool finite = top < 0x7F800000u;
    const double scale = scale_of(top);
    const float large = (float)((double)__uint_as_float(finite ? top : 0) * scale) * (1.0f / 1024);  // a scale may exceed float
    const i64 plane = (i64)to.rows * to.padded;
    Counts counts = {0, 0, 0};
    for (int start = 0; start < to.padded; start += 128) {
        u32 words[3] = {0, 0, 0};
        const int before = counts.nonzero;
        for (int j = 0; j < 4; ++j) {
            const int i = start + 4 * y + j;
            slice(inside && finite && i < k ? turned(from[i * to.k_stride], i) : 0.0f, scale, large, j, words, counts);
        }
        for (int s = 0; s < 3; ++s) staged[16 * s + c][y] = words[s];
        const u32 bit = __syncthreads_or(counts.nonzero > before) ? 1u << start / 128 % 32 : 0;
        if (threadIdx.x == 0) seen[start / 4096] |= bit;
        for (int line = threadIdx.x / 32; line < 48; line += 16) {
            const int to_row = first + line % 16;
            if (to_row < to.rows)
                *(u32*)(to.slices + line / 16 * plane + (i64)to_row * to.padded + start + threadIdx.x % 32 * 4) = staged[line][threadIdx.x % 32];
        }
        __syncthreads();
    }
    squares[y][c] = counts.square;
    atomicAdd(&nonzeros[c], counts.nonzero);
    atomicAdd(&larges[c], counts.large);
    __syncthreads();
    if (y < words_of(to) && inside) to.row_chunks[row * words_of(to) + y] = seen[y];
    if (y != 0 || !inside) return;
    counts = {0, nonzeros[c], larges[c]};
    for (int i = 0; i < 32; ++i) counts.square += squares[i][c];
    describe(to, row, k, top, scale, counts);
}

// The blocks and the worst of each matrix. Grid: 2 blocks of 256 threads, one a matrix.
extern "C" __global__ void __launch_bounds__(256) summarise(const Matrix a, const Matrix b) {
    __shared__ float alphas[8], shares[8];
    __shared__ int flagged[8];
    const Matrix of = blockIdx.x == 0 ? a : b;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = (of.rows + 127) / 128;
    if (count == 0) return;
    float worst_alpha = 0, worst_share = 1;
    int any = 0;
    for (int block = warp; block < count; block += 8) {
        float sum = 0, most = 0, share = 0, second = 0, fourth = 0;
        int used = 0;
        for (int i = 0; i < 4; ++i) {
            const int row = block * 128 + lane + 32 * i;
            if (row < of.rows) {
                const float square = of.norms[row] * of.norms[row];
                any |= of.flags[row];
                second += square, fourth += square * square;
                if (of.stats[2 * row + 1] >= 0) {
                    sum += of.stats[2 * row];
                    most = fmaxf(most, of.stats[2 * row]);
                    share += of.stats[2 * row + 1];
                    ++used;
                }
            }
        }
        for (int step = 16; step > 0; step /= 2) {
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
            most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, step));
            share += __shfl_xor_sync(0xFFFFFFFFu, share, step);
            second += __shfl_xor_sync(0xFFFFFFFFu, second, step);
            fourth += __shfl_xor_sync(0xFFFFFFFFu, fourth, step);
            used += __shfl_xor_sync(0xFFFFFFFFu, used, step);
        }
        const float alpha = used ? fmaxf(sum / used, 0.125f * most) : 0.0f;
        share = used ? share / used : 1.0f;
        if (lane == 0) {
            of.blocks[2 * block] = alpha;
            of.blocks[2 * block + 1] = share;
            of.floors[block] = floor_of(second, fourth, (float)used);
        }
        for (int word = 0; word < words_of(of); ++word) {
            u32 chunks = 0;
            for (int row = block * 128 + lane; row < min(block * 128 + 128, of.rows); row += 32) chunks |= of.row_chunks[row * words_of(of) + word];
            for (int step = 16; step > 0; step /= 2) chunks |= __shfl_xor_sync(0xFFFFFFFFu, chunks, step);
            if (lane == 0) of.chunks[block * words_of(of) + word] = chunks;
        }
        worst_alpha = fmaxf(worst_alpha, alpha);
        worst_share = fminf(worst_share, share);
    }
    for (int step = 16; step > 0; step /= 2) any |= __shfl_xor_sync(0xFFFFFFFFu, any, step);
    if (lane == 0) {
        alphas[warp] = worst_alpha;
        shares[warp] = worst_share;
        flagged[warp] = any;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 8; ++i) {
        worst_alpha = fmaxf(worst_alpha, alphas[i]);
        worst_share = fminf(worst_share, shares[i]);
        any |= flagged[i];
    }
    of.worst[0] = worst_alpha;
    of.worst[1] = worst_share;
    of.worst[2] = any ? 1.0f : 0.0f;
}

// Whether any tile of 128 rows of a side needs more than three slices: the other side's blocks share a chunk that is not all zeros, and their level says
// so, with 0.1 % to spare for how this text is compiled elsewhere. To be asked by a whole block of 256 threads.
__device__ __forceinline__ bool needs_more(const Matrix& to, int block, const Matrix& other, int k) {
    const float alpha = 1.001f * to.blocks[2 * block], share = to.blocks[2 * block + 1];
    if (tile_level(alpha, share, other.worst[0], other.worst[1], (float)k) <= 3) return false;
    const int words = words_of(to);
    bool any = false;
    for (int i = threadIdx.x; i < (other.rows + 127) / 128; i += 256) {
        u32 shared = 0;
        for (int word = 0; word < words; ++word) shared |= to.chunks[block * words + word] & other.chunks[i * words + word];
        any |= shared != 0 && tile_level(alpha, share, other.blocks[2 * i], other.blocks[2 * i + 1], (float)k) > 3;
    }
    return __syncthreads_or(any);
}

constexpr int AT_ONCE = 4;  // of four elements each a thread, so that as many loads are under way

// Write the last two slices of `count` rows, at most 16. scales: of these rows, 0 for Inf and NaN. WIDE: rows can be read by fours.
template <bool WIDE>
__device__ __forceinline__ void write_last(const Matrix& to, const double* scales, int first, int count, int k) {
    const i64 plane = (i64)to.rows * to.padded;
    const bool across = to.k_stride != 1;  // then the threads of half a warp have a row each, else a warp has one
    const int t = threadIdx.x, step = across ? 64 : 128;
    for (int line = across ? t % 16 : t / 32; line < count; line += across ? 16 : 8) {
        const float* from = row_of(to, first + line);
        const double scale = scales[line];
        signed char* out = to.slices + (first + line) * (i64)to.padded;
        for (int start = 4 * (across ? t / 16 : t % 32); start < to.padded; start += AT_ONCE * step) {
            float v[AT_ONCE][4];
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                const int i = start + j * step;
                if (WIDE) {
                    const float4 four = i < k && scale != 0.0 ? *(const float4*)(from + i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    v[j][0] = four.x, v[j][1] = four.y, v[j][2] = four.z, v[j][3] = four.w;
                } else {
                    for (int l = 0; l < 4; ++l) v[j][l] = i + l < k && scale != 0.0 ? from[(i + l) * to.k_stride] : 0.0f;
                }
            }
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                const int i = start + j * step;
                u32 fourth = 0, fifth = 0;
                for (int l = 0; l < 4; ++l) {
                    const u32 low = (u32)fixed_point(turned(v[j][l], i + l), scale) ^ 0x80808080u;
                    fourth |= (low >> 8 & 255u) << 8 * l, fifth |= (low & 255u) << 8 * l;
                }
                if (i < to.padded) *(u32*)(out + 3 * plane + i) = fourth, *(u32*)(out + 4 * plane + i) = fifth;
            }
        }
    }
}

// Write the last two slices of the rows that may meet a tile of level 4 or 5. Grid: blocks of 256 threads, each for 16 rows of a, then of b. `level` > 0
// takes the rule's place.
extern "C" __global__ void __launch_bounds__(256) slice_more(const Matrix a, const Matrix b, int k, int level) {
    const int a_count = (a.rows + 15) / 16;
    const bool left = (int)blockIdx.x < a_count;
    const Matrix to = left ? a : b;
    if (blockIdx.x == 0 && threadIdx.x == 0) a.worst[3] = 0.0f;
    const int part = left ? blockIdx.x : blockIdx.x - a_count, block = part / 8, first = 16 * part, count = min(16, to.rows - first);
    if (level ? level <= 3 : !needs_more(to, block, left ? b : a, k)) return;
    if (to.done[part]) return;
    __shared__ double scales[16];
    if (threadIdx.x < 16) {
        const int row = first + threadIdx.x;
        scales[threadIdx.x] = (int)threadIdx.x < count && !to.flags[row] ? short_mantissa(0.00390625 / to.inverse[row] * 1.001) : 0.0;
    }
    __syncthreads();
    const bool wide = to.k_stride == 1 && k % 4 == 0 && to.row_stride % 4 == 0 && to.batch_stride % 4 == 0 && ((unsigned long long)to.x & 15) == 0;
    if (wide)
        write_last<true>(to, scales, first, count, k);
    else
        write_last<false>(to, scales, first, count, k);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) to.done[part] = 1;
}

#include "int8_plain.h"
