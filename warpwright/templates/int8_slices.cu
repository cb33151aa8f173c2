// The passes around the product of INT8 slices (int8_product.cu): cut rows into signed bytes, describe them, add slices where they are needed, and work
// out plainly what has Inf or NaN in it. Plain CUDA C++: it also runs on a CPU through warpwright.domains.transpile.
//
// A row is scaled by s = (1 + j / 16) 2^p, the largest such number with s * max|x| < 127.49, and rounded to w = s * x * 2^32. The short mantissa keeps
// whole numbers exact and wastes at most 6 % of the range, where a power of two wastes up to half. The bytes of w + 0x80808080 are the slices: the top
// one as it is, the others less 128, so each lies in [-128, 127] and w = sum of q[i] 2^(8 (4 - i)).
//
// Traffic: 4 bytes read (twice; the second time from L2) and 3 written an element. Predicted on an H200: 3.5 TB/s, 35 us for 4096 x 4096.
//
// Parameters (macros): WARPS a row: 1 for short rows, 8 for long ones; 256 threads a block.
//
// NOTES (outcomes; add below): not run on a GPU yet.

#include "int8_level.h"

typedef unsigned int u32;
typedef long long i64;

constexpr int THREADS = 32 * WARPS, ROWS = 256 / THREADS;

__device__ __forceinline__ u32 magnitude(float x) { return __float_as_uint(x) & 0x7FFFFFFFu; }

__device__ __forceinline__ double short_mantissa(double x) { return __longlong_as_double(__double_as_longlong(x) & ~((1ll << 48) - 1)); }

__device__ __forceinline__ double scale_of(u32 top) {  // of a row whose largest magnitude has these bits
    if (top == 0 || top >= 0x7F800000u) return 1.0;
    return short_mantissa(127.49 / (double)__uint_as_float(top));
}

__device__ __forceinline__ i64 fixed_point(float x, double scale) {  // w + 0x80808080
    return __double2ll_rn((double)x * scale * 4294967296.0) + 0x80808080ll;
}

// slices: [5][rows][pitch_out] bytes, of which the first three are written, with zeros from column k to pitch_out (a multiple of 128).
// inverse[rows] = 2^-8 / s. stats[rows] = (nonzero elements / sum of squares, share of elements within 2^-12 of the largest; -1 for a row of zeros).
// flags[rows]: 1 where a row has Inf or NaN; its slices are zeros.
extern "C" __global__ void __launch_bounds__(256) slice_rows(const float* x, i64 pitch, signed char* slices, double* inverse, float* stats, int* flags, int rows,
                                                             int k, int pitch_out) {
    __shared__ u32 tops[8];
    __shared__ float squares[8];
    __shared__ int nonzeros[8], larges[8];
    const int t = threadIdx.x % THREADS, row = blockIdx.x * ROWS + threadIdx.x / THREADS, warp = threadIdx.x / 32, first_warp = warp - warp % WARPS;
    const bool inside = row < rows;
    const float* from = x + (inside ? row : 0) * pitch;
    const bool wide = k % 4 == 0 && pitch % 4 == 0 && ((unsigned long long)x & 15) == 0;

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
    const float large = __uint_as_float(finite ? top : 0) * (float)scale * (1.0f / 4096);
    const i64 plane = (i64)rows * pitch_out;
    signed char* to = slices + (i64)(inside ? row : 0) * pitch_out;
    float square = 0;
    int nonzero = 0, big = 0;
    for (int i = 4 * t; inside && i < pitch_out; i += 4 * THREADS) {
        float v[4];
        if (wide && i < k) {
            const float4 four = *(const float4*)(from + i);
            v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
        } else {
            for (int j = 0; j < 4; ++j) v[j] = i + j < k ? from[i + j] : 0.0f;
        }
        u32 words[3] = {0, 0, 0};
        for (int j = 0; j < 4; ++j) {
            const float one = finite ? v[j] : 0.0f;
            const i64 w = fixed_point(one, scale);
            const u32 low = (u32)w ^ 0x80808080u;
            words[0] |= ((u32)(w >> 32) & 255u) << (8 * j);
            words[1] |= (low >> 24) << (8 * j);
            words[2] |= ((low >> 16) & 255u) << (8 * j);
            const float scaled = (float)((double)one * scale);
            square += scaled * scaled;
            nonzero += one != 0.0f;
            big += one != 0.0f && fabsf(scaled) >= large;
        }
        for (int s = 0; s < 3; ++s) *(u32*)(to + s * plane + i) = words[s];
    }
    for (int step = 16; step > 0; step /= 2) {
        square += __shfl_xor_sync(0xFFFFFFFFu, square, step);
        nonzero += __shfl_xor_sync(0xFFFFFFFFu, nonzero, step);
        big += __shfl_xor_sync(0xFFFFFFFFu, big, step);
    }
    if (threadIdx.x % 32 == 0) {
        squares[warp] = square;
        nonzeros[warp] = nonzero;
        larges[warp] = big;
    }
    __syncthreads();
    if (t != 0 || !inside) return;
    square = 0, nonzero = 0, big = 0;
    for (int i = 0; i < WARPS; ++i) {
        square += squares[first_warp + i];
        nonzero += nonzeros[first_warp + i];
        big += larges[first_warp + i];
    }
    inverse[row] = 0.00390625 / scale;
    stats[2 * row] = nonzero ? (float)nonzero / square : 0.0f;
    stats[2 * row + 1] = nonzero ? (float)big / (float)k : -1.0f;
    flags[row] = !finite;
}

// blocks[rows / 128, rounded up] = (alpha, share) of 128 rows each; worst = (largest alpha of a block, least share of one, 1 where any row is flagged).
// One block of 256 threads.
extern "C" __global__ void __launch_bounds__(256) summarise(const float* stats, const int* flags, float* blocks, float* worst, int rows) {
    __shared__ float alphas[8], shares[8];
    __shared__ int flagged[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = (rows + 127) / 128;
    float worst_alpha = 0, worst_share = 1;
    int any = 0;
    for (int block = warp; block < count; block += 8) {
        float sum = 0, most = 0, share = 0;
        int used = 0;
        for (int i = 0; i < 4; ++i) {
            const int row = block * 128 + lane + 32 * i;
            if (row < rows) {
                any |= flags[row];
                if (stats[2 * row + 1] >= 0) {
                    sum += stats[2 * row];
                    most = fmaxf(most, stats[2 * row]);
                    share += stats[2 * row + 1];
                    ++used;
                }
            }
        }
        for (int step = 16; step > 0; step /= 2) {
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
            most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, step));
            share += __shfl_xor_sync(0xFFFFFFFFu, share, step);
            used += __shfl_xor_sync(0xFFFFFFFFu, used, step);
        }
        const float alpha = used ? fmaxf(sum / used, 0.125f * most) : 0.0f;
        share = used ? share / used : 1.0f;
        if (lane == 0) {
            blocks[2 * block] = alpha;
            blocks[2 * block + 1] = share;
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
    worst[0] = worst_alpha;
    worst[1] = worst_share;
    worst[2] = any ? 1.0f : 0.0f;
}

// Write the last two slices of the rows that may meet a tile of level 4 or 5 in a product with a matrix of which `other` is the worst. Grid:
// (rows / 16, rounded up); a block of 256 threads does 16 rows. done[grid]: 1 where that has been done before. `level` > 0 takes the rule's place.
extern "C" __global__ void __launch_bounds__(256) slice_more(const float* x, i64 pitch, signed char* slices, const double* inverse, const int* flags,
                                                             const float* blocks, const float* other, int* done, int rows, int k, int pitch_out, int level) {
    const int block = blockIdx.x / 8;
    if (!level) level = tile_level(blocks[2 * block], blocks[2 * block + 1], other[0], other[1], (float)k);
    if (level <= 3 || done[blockIdx.x]) return;
    const i64 plane = (i64)rows * pitch_out;
    for (int row = blockIdx.x * 16; row < min(rows, blockIdx.x * 16 + 16); ++row) {
        const double scale = short_mantissa(0.00390625 / inverse[row] * 1.001);
        for (int i = threadIdx.x; i < pitch_out; i += 256) {
            const i64 w = fixed_point(i < k && !flags[row] ? x[row * pitch + i] : 0.0f, scale);
            signed char* to = slices + row * (i64)pitch_out + i;
            const u32 low = (u32)w ^ 0x80808080u;
            to[3 * plane] = (signed char)(low >> 8);
            to[4 * plane] = (signed char)low;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) done[blockIdx.x] = 1;
}

// Rows of A and of B with Inf or NaN: their rows and columns of C by plain float32 sums, in place of what the slices gave. A persistent grid of 256
// threads a block walks tiles of 32 x 32; it ends at once where nothing is flagged.
extern "C" __global__ void __launch_bounds__(256) plain_rows(const float* a, i64 a_pitch, const float* b, i64 b_pitch, float* c, i64 c_pitch, const int* a_flags,
                                                             const int* b_flags, const float* a_worst, const float* b_worst, int m, int n, int k) {
    __shared__ float a_tile[32][33], b_tile[32][33];
    __shared__ int needed;
    if (a_worst[2] == 0.0f && b_worst[2] == 0.0f) return;
    const int x = threadIdx.x % 32, y = threadIdx.x / 32, across = (n + 31) / 32, tiles = (m + 31) / 32 * across;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int row = tile / across * 32, column = tile % across * 32;
        if (threadIdx.x == 0) needed = 0;
        __syncthreads();
        if (y == 0 && ((row + x < m && a_flags[row + x]) || (column + x < n && b_flags[column + x]))) needed = 1;
        __syncthreads();
        if (needed) {
            float sums[4] = {0, 0, 0, 0};
            for (int start = 0; start < k; start += 32) {
                for (int i = y; i < 32; i += 8) {
                    a_tile[i][x] = row + i < m && start + x < k ? a[(row + i) * a_pitch + start + x] : 0.0f;
                    b_tile[i][x] = column + i < n && start + x < k ? b[(column + i) * b_pitch + start + x] : 0.0f;
                }
                __syncthreads();
                const int left = min(32, k - start);
                for (int j = 0; j < left; ++j)
                    for (int i = 0; i < 4; ++i) sums[i] += a_tile[y + 8 * i][j] * b_tile[x][j];
                __syncthreads();
            }
            for (int i = 0; i < 4; ++i) {
                const int r = row + y + 8 * i;
                if (r < m && column + x < n && (a_flags[r] || b_flags[column + x])) c[r * c_pitch + column + x] = sums[i];
            }
        }
        __syncthreads();
    }
}
