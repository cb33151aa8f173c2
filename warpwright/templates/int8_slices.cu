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
//   H200, 2026-11-30: the product of two triangles of 4096 took 0.595 ms, of the same with rows and columns moved along in memory (as calls of a stream
//   have them) 2.75. There most suspects are results that meet nothing at all beside full rows, and plain_rows walked the whole of k for their squares,
//   four of a column by one block: up to 376 steps of 32 a block. Since then it looks only at chunks that small rows and columns meet, and neighbours go
//   to other blocks: 8 to 28 steps by count. Not run since: 0.4 to 0.55 ms predicted for both.
//   H200, 2026-11-30: where rows are nearly alike, as in the late layers of a deep network that was never trained, 10 to 20 % of the columns are small in
//   16 rows by chance, so that each square has some. None is marked, but plain_rows walked all of k for each: 0.4 ms for 1024 x 1024 x 1024, of which
//   the product takes 0.04 (2,400 to 2,800 clocks of an SM a step of 32). Since then a walk ends where nothing can be marked any more (1 or 2 steps of 32
//   by count), a step has a third of the instructions (340 for 1,000: no division by row, sums by line instead of by warp), 64 registers, no spills.
//   Not run since: 10 to 15 us predicted for such a product.

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

constexpr int SKEW = 19;  // squares that one row of squares moves along: suspects that stand below one another, or along a diagonal, go to many blocks
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
    const i64 plane = (i64)to.rows * to.padded;
    const bool across = to.k_stride != 1;
    for (int e = threadIdx.x; e < 16 * to.padded; e += 256) {
        const int line = across ? e % 16 : e / to.padded, i = across ? e / 16 : e % to.padded, row = first + line;
        if (line >= count) continue;
        const double scale = short_mantissa(0.00390625 / to.inverse[row] * 1.001);
        const i64 w = fixed_point(i < k && !to.flags[row] ? turned(row_of(to, row)[i * to.k_stride], i) : 0.0f, scale);
        signed char* out = to.slices + row * (i64)to.padded + i;
        const u32 low = (u32)w ^ 0x80808080u;
        out[3 * plane] = (signed char)(low >> 8);
        out[4 * plane] = (signed char)low;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) to.done[part] = 1;
}

// ---- plain sums -------------------------------------------------------------------------------------------------------------------------------------

struct Square {  // of 32 x 32 results: which of its rows and columns are wanted, and the elements they come from, 32 of k at a time
    float a[32][33], b[32][33];
    int rows[32], columns[32];
    double scales[2][32];                // of the rows of A and of B, as they were cut; 0 outside and for Inf and NaN
    float norms[2][32];                  // of the scaled rows
    float nonzero[2][32], large[2][32];  // how many elements are not zero, and how many are within 2^-10 of the largest
    u32 small_rows, small_columns[2];    // bit by bit: whose results are small, of columns those in the upper and in the lower 16 rows
    u32 chunks[MOST_WORDS];              // of k, bit by bit as Matrix.chunks: where small rows and columns meet anything
    // Lines are of three kinds: rows, columns in the upper half and columns in the lower half.
    float parts[2][3][8][32];            // of the numbers that a kind is multiplied by, at each k, of four rows: the squares, and how many are not zero
    float totals[2][3][32];              // the same of all rows
    float most[3][32], least[3][32];     // `limit` says what
};

struct Corner {  // of a square: its first rows of A and of B, and where the rows of these matrices end
    int a, a_end, b, b_end;
    const float *a_row, *b_row;  // the elements of these first rows
};

// Of elements start to start + 31 of 32 rows, the first at `row`, of which `count` are there, four a thread, zeros outside.
__device__ __forceinline__ void load(float (&to)[4], const Matrix& from, const float* row, int count, int start, int k) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const float* first = row + y * from.row_stride + (start + x) * from.k_stride;
    for (int i = 0; i < 4; ++i) to[i] = y + 8 * i < count && start + x < k ? first[8 * i * from.row_stride] : 0.0f;
}

__device__ __forceinline__ float times(float value, double scale) { return scale == 0.0 ? 0.0f : (float)((double)value * scale); }

// 32 of k of both sides, in scaled units or as they are. Each thread then sees the elements that are its own, others after a barrier.
__device__ __forceinline__ void fetch(Square& of, const Matrix& a, const Matrix& b, const Corner& at, int start, int k, bool scaled) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    float left[4], right[4];
    load(left, a, at.a_row, at.a_end - at.a, start, k);
    load(right, b, at.b_row, at.b_end - at.b, start, k);
    for (int i = 0; i < 4; ++i) {
        const int row = y + 8 * i;
        of.a[row][x] = scaled ? times(left[i], of.scales[0][row]) : left[i];
        of.b[row][x] = scaled ? times(right[i], of.scales[1][row]) : right[i];
    }
}

__device__ __forceinline__ bool has_chunk(const u32* chunks, int start) { return chunks[start / 4096] >> start / 128 % 32 & 1; }

__device__ __forceinline__ float of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

__device__ __forceinline__ float most_of_warp(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

__device__ __forceinline__ u32 any_of_warp(u32 x) {
    for (int step = 16; step > 0; step /= 2) x |= __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

// A quarter of the root mean square of norms that are not zero, over a warp.
__device__ __forceinline__ float quarter_of(float norm) {
    const float second = of_warp(norm * norm), count = of_warp(norm > 0.0f ? 1.0f : 0.0f);
    return count > 0.0f ? 0.25f * sqrtf(second / count) : 0.0f;
}

// Of the chunks of k those where these rows meet any column, these columns of the upper 16 rows any of those, and likewise of the lower ones.
__device__ __forceinline__ void meet(Square& of, const Matrix& a, const Matrix& b, const Corner& at, u32 rows, u32 upper, u32 lower) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32, words = words_of(a);
    if (y < words) {
        const u32 row = at.a + x < at.a_end ? a.row_chunks[(at.a + x) * words + y] : 0;
        const u32 column = at.b + x < at.b_end ? b.row_chunks[(at.b + x) * words + y] : 0;
        const u32 of_rows = any_of_warp(rows >> x & 1 ? row : 0) & any_of_warp(column);
        const u32 of_upper = any_of_warp(upper >> x & 1 ? column : 0) & any_of_warp(x < 16 ? row : 0);
        const u32 of_lower = any_of_warp(lower >> x & 1 ? column : 0) & any_of_warp(x < 16 ? 0 : row);
        if (x == 0) of.chunks[y] = of_rows | of_upper | of_lower;
    }
    __syncthreads();
}

// Which rows of a square, and which columns of its upper and of its lower half, have small results only. The product has found this of 128 columns and
// of 16 rows, with a bound no larger than this one (2 units more than its own, for it sees sums of orders 0 and 1): all that it found is found again.
// Which of them are right because they meet next to nothing (zeros, in most cases) their own chunks tell, without a walk along k.
__device__ __forceinline__ void find_small(Square& of, const Matrix& a, const Matrix& b, const Corner& at, const float* c, i64 c_pitch, int column, int k) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    if (y < 2) {
        const Matrix& from = y ? b : a;
        const int row = (y ? at.b : at.a) + x;
        const bool counts = row < (y ? at.b_end : at.a_end) && !from.flags[row];
        of.scales[y][x] = counts ? 0.00390625 / from.inverse[row] : 0.0;
        of.norms[y][x] = counts ? from.norms[row] : 0.0f;
        of.nonzero[y][x] = counts ? from.stats[2 * row] * from.norms[row] * from.norms[row] : 0.0f;
        of.large[y][x] = counts ? fmaxf(from.stats[2 * row + 1], 0.0f) * (float)k : 0.0f;
    }
    if (threadIdx.x == 0) of.small_rows = of.small_columns[0] = of.small_columns[1] = 0;
    __syncthreads();
    const float share = rsqrtf((float)k), bound = share * fmaxf(quarter_of(of.norms[1][x]), b.floors[at.b / 128]);
    float halves[2] = {0, 0};
    for (int i = 0; i < 4; ++i) {
        const int row = y + 8 * i;
        const double scale = of.scales[0][row] * of.scales[1][x];
        const float size = scale == 0.0 ? 0.0f : (float)(fabs((double)c[(at.a + row) * c_pitch + column + x]) * scale);
        halves[i / 2] = fmaxf(halves[i / 2], size);
        const float peak = most_of_warp(size), norm = of.norms[0][row];
        if (x == 0 && norm > 0.0f && peak < norm * bound + 2.0f) atomicOr(&of.small_rows, 1u << row);
    }
    of.parts[0][0][y][x] = halves[0], of.parts[0][1][y][x] = halves[1];
    __syncthreads();
    if (y < 2) {
        const float rows_bound = share * quarter_of(x / 16 == y ? of.norms[0][x] : 0.0f), norm = of.norms[1][x];
        float peak = 0;
        for (int i = 0; i < 8; ++i) peak = fmaxf(peak, of.parts[0][y][i][x]);
        const u32 small = any_of_warp(rows_bound > 0.0f && norm > 0.0f && peak < norm * rows_bound + 2.0f ? 1u << x : 0u);
        if (x == 0) of.small_columns[y] = small;
    }
    __syncthreads();
    meet(of, a, b, at, of.small_rows, of.small_columns[0], of.small_columns[1]);
}

// Over the eight threads of a line.
__device__ __forceinline__ float of_line(float x) {
    for (int step = 4; step > 0; step /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

struct Terms {  // of a row or a column of a square, over its 32 or 16 results, in scaled units: a thread's share
    float squares, count, error;  // of the terms; how many are not zero; the squared error of those by slices

    // A number x, and of those that it is multiplied by the squares and how many are not zero.
    __device__ __forceinline__ void add(float x, float others, float nonzero, const Errors& errors) {
        squares += x * x * others;
        if (x == 0.0f) return;
        count += nonzero;
        error += errors.left_out * nonzero + errors.rounding * (x * x * nonzero + others);
    }
    // The squared error that is let pass, with at least so many terms. No term lessens it.
    __device__ __forceinline__ float allowed(float results, float least) const {
        return 16.0f * float32_error(fmaxf(of_line(count), least) / results) * of_line(squares);
    }
};

__device__ __forceinline__ float results_of(int kind) { return kind ? 16.0f : 32.0f; }

__device__ __forceinline__ bool is_small(const Square& of, int kind, int line) {
    return (kind ? of.small_columns[kind - 1] : of.small_rows) >> line & 1;
}

// What is known of small lines before a walk: the most that the squared error of each can become, with 1 % to spare for rounding (0 for lines that are
// not small), and the least number of its terms. Elements that are not zero meet no more of the other side's than there are; those within 2^-10 of the
// largest, which no scaling loses, meet where both sides have more than k together.
__device__ __forceinline__ void limit(Square& of, const Errors& errors, int k) {
    const int x = threadIdx.x % 32, kind = threadIdx.x / 32;
    if (kind < 3) {
        const int own = kind ? 1 : 0, other = 1 - own;
        const bool met = of.norms[other][x] > 0.0f && (kind == 0 || x / 16 == kind - 1);
        const float count = of_warp(met ? 1.0f : 0.0f), square = of_warp(met ? of.norms[other][x] * of.norms[other][x] : 0.0f);
        const float nonzero = of_warp(met ? of.nonzero[other][x] : 0.0f), large = of_warp(met ? of.large[other][x] : 0.0f);
        const float terms = fminf(count * of.nonzero[own][x], nonzero);
        const float error = errors.left_out * terms + errors.rounding * (count * of.norms[own][x] * of.norms[own][x] + square);
        of.most[kind][x] = is_small(of, kind, x) ? 1.01f * error : 0.0f;
        of.least[kind][x] = 0.999f * (count * of.large[own][x] + large - count * (float)k);
    }
    __syncthreads();
}

// The totals of 32 of k, each thread having fetched four elements of either side.
__device__ __forceinline__ void add_up(Square& of) {
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    float squares[3] = {0, 0, 0}, counts[3] = {0, 0, 0};
    for (int i = 0; i < 4; ++i) {
        const float one = of.a[y + 8 * i][x], other = of.b[y + 8 * i][x];
        squares[0] += other * other, counts[0] += other != 0.0f ? 1.0f : 0.0f;
        squares[1 + i / 2] += one * one, counts[1 + i / 2] += one != 0.0f ? 1.0f : 0.0f;
    }
    for (int kind = 0; kind < 3; ++kind) of.parts[0][kind][y][x] = squares[kind], of.parts[1][kind][y][x] = counts[kind];
    __syncthreads();
    if (y < 6) {
        float total = 0;
        for (int i = 0; i < 8; ++i) total += of.parts[y / 3][y % 3][i][x];
        of.totals[y / 3][y % 3][x] = total;
    }
    __syncthreads();
}

// Mark the small rows and columns of a suspect square whose error by slices exceeds four times float32's, by the model of int8_level.h for the terms that
// are there. Where results are small because large terms cancel, float32 errs as much. Most such lines are small by chance, and few of their terms tell
// that they are right: the walk ends where no small line can be marked any more. That is asked after 1, 2, 4, 8, ... steps.
__device__ __forceinline__ void mark_small(Square& of, const Matrix& a, const Matrix& b, const Corner& at, int k, int level) {
    const int line = threadIdx.x / 8, part = threadIdx.x % 8 * 4;  // this thread's lines of each kind, and the first of its four of k
    const Errors errors = errors_of(level);
    limit(of, errors, k);
    Terms terms[3] = {};
    int walked = 0;
    for (int start = 0; start < k; start += 32) {
        if (!has_chunk(of.chunks, start)) continue;
        fetch(of, a, b, at, start, k, true);
        add_up(of);
        for (int i = part; i < part + 4; ++i)
            for (int kind = 0; kind < 3; ++kind) terms[kind].add((kind ? of.b : of.a)[line][i], of.totals[0][kind][i], of.totals[1][kind][i], errors);
        __syncthreads();
        ++walked;
        if ((walked & (walked - 1)) != 0) continue;
        bool open = false;
        for (int kind = 0; kind < 3; ++kind) open |= terms[kind].allowed(results_of(kind), of.least[kind][line]) < of.most[kind][line];
        if (!__syncthreads_or(open)) return;
    }
    bool errs[3];
    for (int kind = 0; kind < 3; ++kind) errs[kind] = of_line(terms[kind].error) > terms[kind].allowed(results_of(kind), 0) && is_small(of, kind, line);
    if (part == 0 && errs[0]) of.rows[line] = 1;
    if (part == 0 && (errs[1] || errs[2])) of.columns[line] = 1;
}

struct Suspects {  // of one product: a byte for each 16 rows of a tile of 128 x `width` results, tiles in the order of their places
    const unsigned short* found;
    int across, width;

    __device__ __forceinline__ bool at(int row, int column) const { return found[(row / 128 * across + column / width) * 4 + row % 128 / 32] != 0; }

    // Of the square at a row and a column of a matrix that begins at row `top` and ends before `end` and before n columns. A square at the end may have
    // too few rows or columns to tell: there those before it count as well.
    __device__ __forceinline__ bool square(int row, int column, int top, int end, int n) const {
        bool any = at(row, column);
        for (int back = 32; row + 32 > end && back <= 128 && row - back >= top; back += 32) any |= at(row - back, column);
        return any || (column + 32 > n && column >= 128 && at(row, column - 128));
    }
};

// Plain float32 sums in place of what the slices gave: for rows of A and of B with Inf or NaN (their slices are zeros), and, in the tiles that the product
// found suspect, for the rows and columns that `mark_small` marks. A grid of 256 threads a block walks squares of 32 x 32; it ends at once where there
// is nothing to do. suspects: of tiles of 128 x `columns`. `level` > 0 takes the rule's place.
extern "C" __global__ void __launch_bounds__(256, 4)
    plain_rows(const Matrix a, const Matrix b, float* c, i64 c_pitch, int k, const unsigned short* suspects, int columns, int level) {
    __shared__ Square of;
    const bool special = a.worst[2] != 0.0f || b.worst[2] != 0.0f, doubtful = a.worst[3] != 0.0f;
    if (!special && !doubtful) return;
    const int m = a.per, n = b.per, x = threadIdx.x % 32, y = threadIdx.x / 32, across = (n + 31) / 32, tiles = (m + 31) / 32 * across;
    for (int tile = blockIdx.x; tile < a.batches * tiles; tile += gridDim.x) {
        const int above = tile / tiles * m, before = tile / tiles * n;  // rows of a and of b in the batches before
        const int down = tile % tiles / across, row = above + down * 32, column = (tile + SKEW * down) % across * 32;
        const int b_row = before + column, a_block = row / 128 * 2, b_block = b_row / 128 * 2, a_end = above + m, b_end = before + n;
        const bool suspect = doubtful && Suspects{suspects, (n + columns - 1) / columns, columns}.square(row, column, above, a_end, n);
        if (!special && !suspect) continue;
        __syncthreads();
        if (y == 0) of.rows[x] = row + x < a_end && a.flags[row + x], of.columns[x] = b_row + x < b_end && b.flags[b_row + x];
        const i64 batch = tile / tiles;
        const float* a_first = a.x + batch * a.batch_stride + (row - above) * a.row_stride;
        const Corner corner = {row, a_end, b_row, b_end, a_first, b.x + batch * b.batch_stride + column * b.row_stride};
        const bool flagged = __syncthreads_or(y == 0 && (of.rows[x] || of.columns[x]));
        if (suspect) {
            const int rule = tile_level(a.blocks[a_block], a.blocks[a_block + 1], b.blocks[b_block], b.blocks[b_block + 1], (float)k);
            find_small(of, a, b, corner, c, c_pitch, column, k);
            if (of.small_rows | of.small_columns[0] | of.small_columns[1]) mark_small(of, a, b, corner, k, level ? level : rule);
        }
        if (!__syncthreads_or(of.rows[x] || of.columns[x])) continue;
        const u32 wanted = any_of_warp(of.columns[x] ? 1u << x : 0u);
        meet(of, a, b, corner, any_of_warp(of.rows[x] ? 1u << x : 0u), wanted, wanted);
        float sums[4] = {0, 0, 0, 0};
        for (int start = 0; start < k; start += 32) {
            if (!flagged && !has_chunk(of.chunks, start)) continue;  // zeros times Inf are not zeros
            fetch(of, a, b, corner, start, k, false);
            __syncthreads();
            const int left = min(32, k - start);
            for (int j = 0; j < left; ++j)
                for (int i = 0; i < 4; ++i) sums[i] += of.a[y + 8 * i][j] * of.b[x][j];
            __syncthreads();
        }
        for (int i = 0; i < 4; ++i) {
            const int at = y + 8 * i;
            if (row + at < a_end && b_row + x < b_end && (of.rows[at] || of.columns[x])) c[(row + at) * c_pitch + column + x] = sums[i];
        }
    }
}
