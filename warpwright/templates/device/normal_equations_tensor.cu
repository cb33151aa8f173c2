// Ordinary least squares by the normal equations, (x^T x) beta = x^T y for x [n, m], m <= 64, on float64 tensor cores: float32 numbers are exact in
// float64, and so are their products; sums and solution are float64's.
//
// A warp takes eight rows at a time. Lane (g, k) = (lane / 4, lane % 4) holds of rows k and k + 4 the columns WW_OLT_TILES * g + t, t = 0, 1, ...: column t of
// every lane is tile t of 8 x 8 of both operands, so that a product reads nothing but registers. Of tiles that mirror one another one is formed, but
// for those in pairs on the diagonal. Warps of a block add up in shared memory, blocks in a second kernel; a third eliminates.
// Least work: n * m * (m + 3) operations in float64.

#define WW_OLT_TILES 8     // tune: 2 4 6 8; of 8 columns
#define WW_OLT_STEP 4      // tune: 4 8; rows of an instruction: with 8, registers are spilled
#define WW_OLT_BLOCKS 132  // tune: 132 264

static const int WW_OLT_WARPS = 8, WW_OLT_MOST = 8 * WW_OLT_TILES;
static const int WW_OLT_PAIRS = WW_OLT_TILES / 2 * (WW_OLT_TILES / 2 + 1);  // 16 x 8 of the product
static const int WW_OLT_SIZE = (4 * WW_OLT_PAIRS + WW_OLT_TILES) * 32;      // numbers that a warp has: of the product, then of x^T y

static __device__ __forceinline__ void ww_olt_add(double* c, double a0, double a1, double a2, double a3, double b0, double b1) {
#if WW_OLT_STEP == 8
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a0), "d"(a1), "d"(b0));
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a2), "d"(a3), "d"(b1));
#endif
}

template <bool WHOLE>
static __device__ __forceinline__ void ww_olt_load(float (&to)[2][WW_OLT_TILES], float (&right)[2], const float* __restrict__ x, const float* __restrict__ y,
                                                   int first, int n, int m, int group, int place) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        const int row = first + place + 4 * s;
        const float* from = x + (size_t)row * m + WW_OLT_TILES * group;
        right[s] = row < n ? y[row] : 0.0f;
        if (WHOLE && WW_OLT_TILES % 4 == 0) {
#pragma unroll
            for (int t = 0; t < WW_OLT_TILES; t += 4) {
                float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (row < n) four = *(const float4*)(from + t);
                to[s][t] = four.x;
                to[s][t + 1] = four.y;
                to[s][t + 2] = four.z;
                to[s][t + 3] = four.w;
            }
        } else {
#pragma unroll
            for (int t = 0; t < WW_OLT_TILES; ++t) to[s][t] = row < n && WW_OLT_TILES * group + t < m ? from[t] : 0.0f;
        }
    }
}

template <bool WHOLE>
static __global__ void __launch_bounds__(32 * WW_OLT_WARPS, 1)
ww_olt_gram(const float* __restrict__ x, const float* __restrict__ y, double* __restrict__ parts, int n, int m) {
    __shared__ double all[WW_OLT_SIZE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
    const int stride = 8 * WW_OLT_WARPS * gridDim.x;
    double sum[WW_OLT_PAIRS][4], right[WW_OLT_TILES];
#pragma unroll
    for (int i = 0; i < WW_OLT_PAIRS; ++i) sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0.0;
#pragma unroll
    for (int t = 0; t < WW_OLT_TILES; ++t) right[t] = 0.0;
    float next[2][WW_OLT_TILES], next_right[2];
    int first = 8 * (WW_OLT_WARPS * blockIdx.x + warp);
    ww_olt_load<WHOLE>(next, next_right, x, y, first, n, m, group, place);
    for (; first < n; first += stride) {
        double own[2][WW_OLT_TILES];
        const double y0 = next_right[0], y1 = next_right[1];
#pragma unroll
        for (int t = 0; t < WW_OLT_TILES; ++t) {
            own[0][t] = next[0][t];
            own[1][t] = next[1][t];
        }
        ww_olt_load<WHOLE>(next, next_right, x, y, first + stride < n ? first + stride : n, n, m, group, place);
#pragma unroll
        for (int p = 0; p < WW_OLT_TILES / 2; ++p) {
#pragma unroll
            for (int u = 2 * p; u < WW_OLT_TILES; ++u) {
                ww_olt_add(sum[p * WW_OLT_TILES - p * (p - 1) + u - 2 * p], own[0][2 * p], own[0][2 * p + 1], own[1][2 * p], own[1][2 * p + 1], own[0][u], own[1][u]);
            }
        }
#pragma unroll
        for (int t = 0; t < WW_OLT_TILES; ++t) right[t] += own[0][t] * y0 + own[1][t] * y1;
    }
#pragma unroll
    for (int t = 0; t < WW_OLT_TILES; ++t) {
        right[t] += __shfl_xor_sync(0xffffffffu, right[t], 1);
        right[t] += __shfl_xor_sync(0xffffffffu, right[t], 2);
    }
    for (int turn = 0; turn < WW_OLT_WARPS; ++turn) {
        if (turn == warp) {
#pragma unroll
            for (int i = 0; i < WW_OLT_PAIRS; ++i) {
#pragma unroll
                for (int e = 0; e < 4; ++e) all[(4 * i + e) * 32 + lane] = turn == 0 ? sum[i][e] : all[(4 * i + e) * 32 + lane] + sum[i][e];
            }
#pragma unroll
            for (int t = 0; t < WW_OLT_TILES; ++t) {
                const int at = (4 * WW_OLT_PAIRS + t) * 32 + lane;
                all[at] = turn == 0 ? right[t] : all[at] + right[t];
            }
        }
        __syncthreads();
    }
    for (int at = threadIdx.x; at < WW_OLT_SIZE; at += 32 * WW_OLT_WARPS) parts[(size_t)blockIdx.x * WW_OLT_SIZE + at] = all[at];
}

// A block has 32 numbers of the warps' order, and writes each to its place and to the one that mirrors it.
static __global__ void __launch_bounds__(256) ww_olt_join(const double* __restrict__ parts, double* __restrict__ gram, int blocks, int m) {
    __shared__ double some[8][32];
    const int lane = threadIdx.x % 32, slice = threadIdx.x / 32, group = lane / 4, place = lane % 4, wide = m + 1;
    double sum = 0.0;
#pragma unroll 4
    for (int block = slice; block < blocks; block += 8) sum += parts[(size_t)block * WW_OLT_SIZE + blockIdx.x * 32 + lane];
    some[slice][lane] = sum;
    __syncthreads();
    if (slice > 0) return;
    for (int other = 1; other < 8; ++other) sum += some[other][lane];
    int pair = blockIdx.x / 4, p = 0;
    if (pair >= WW_OLT_PAIRS) {
        const int row = WW_OLT_TILES * group + (blockIdx.x - 4 * WW_OLT_PAIRS);
        if (place == 0 && row < m) gram[row * wide + m] = sum;
        return;
    }
    while (pair >= WW_OLT_TILES - 2 * p) pair -= WW_OLT_TILES - 2 * p++;
    const int e = blockIdx.x % 4, row = WW_OLT_TILES * group + 2 * p + e / 2, column = WW_OLT_TILES * (2 * place + e % 2) + 2 * p + pair;
    if (row >= m || column >= m) return;
    gram[row * wide + column] = sum;
    gram[column * wide + row] = sum;
}

// Gauss and Jordan: a warp has rows w and w + 32 in registers, a lane every 32nd column; the pivot's row goes round by way of shared memory.
static __global__ void __launch_bounds__(1024) ww_olt_solve(const double* __restrict__ gram, float* __restrict__ beta, int m) {
    __shared__ double pivot_row[2][96];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, wide = m + 1;
    double own[2][3];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 3; ++j) own[i][j] = warp + 32 * i < m && lane + 32 * j < wide ? gram[(warp + 32 * i) * wide + lane + 32 * j] : 0.0;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        for (int q = 0; q < 32; ++q) {
            const int p = 32 * half + q;
            if (p >= m) break;
            if (warp == q) {
                const double inverse = 1.0 / __shfl_sync(0xffffffffu, own[half][half], q);
#pragma unroll
                for (int j = 0; j < 3; ++j) pivot_row[p & 1][lane + 32 * j] = own[half][j] * inverse;
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const double factor = __shfl_sync(0xffffffffu, own[i][half], q);
                if (warp + 32 * i != p) {
#pragma unroll
                    for (int j = half; j < 3; ++j) own[i][j] -= factor * pivot_row[p & 1][lane + 32 * j];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const double diagonal = __shfl_sync(0xffffffffu, own[i][i], warp);
        const double last = m < 32 ? own[i][0] : m < 64 ? own[i][1] : own[i][2];
        if (warp + 32 * i < m && lane == m % 32) beta[warp + 32 * i] = (float)(last / diagonal);
    }
}

static void ww_least_squares_tensor(const float* x, const float* y, float* beta, int n, int m) {  // 1 <= m <= 8 * WW_OLT_TILES
    const int most = (n + 8 * WW_OLT_WARPS - 1) / (8 * WW_OLT_WARPS), blocks = most < WW_OLT_BLOCKS ? most : WW_OLT_BLOCKS;
    double* parts = 0;
    cudaMallocAsync(&parts, ((size_t)blocks * WW_OLT_SIZE + (size_t)m * (m + 1)) * sizeof(double), 0);
    double* gram = parts + (size_t)blocks * WW_OLT_SIZE;
    if (m == WW_OLT_MOST && ((size_t)x) % 16 == 0) {
        ww_olt_gram<true><<<blocks, 32 * WW_OLT_WARPS>>>(x, y, parts, n, m);
    } else {
        ww_olt_gram<false><<<blocks, 32 * WW_OLT_WARPS>>>(x, y, parts, n, m);
    }
    ww_olt_join<<<WW_OLT_SIZE / 32, 256>>>(parts, gram, blocks, m);
    ww_olt_solve<<<1, 1024>>>(gram, beta, m);
    cudaFreeAsync(parts, 0);
}
