// Ordinary least squares by the normal equations: (x^T x) beta = x^T y for x [n, m], m <= 64, sums and solution in float64.
//
// Blocks share out the rows. A thread forms 4 x 4 elements of the symmetric product: rows a, a + t, ... and columns b, b + t, ... for t = m / 4 and a <= b,
// so that neighbouring threads read neighbouring columns from shared memory; y's column stands beside them. A second kernel adds up what the blocks have, a third eliminates in shared memory. Least work: n * m * (m + 3) operations in float64.

#define WW_OLS_ROWS 32     // tune: 16 32 64; rows in shared memory
#define WW_OLS_BLOCKS 528  // tune: 264 528 1056

static const int WW_OLS_MOST = 64, WW_OLS_THREADS = 160;  // 136 tiles of 4 x 4, and 16 of 4 x 1
static const int WW_OLS_WIDE = WW_OLS_MOST + 2;

static __global__ void __launch_bounds__(WW_OLS_THREADS, 4)
ww_ols_gram(const float* __restrict__ x, const float* __restrict__ y, double* __restrict__ parts, int n, int m, int rows_of_block) {
    __shared__ __align__(16) double rows[WW_OLS_ROWS][WW_OLS_WIDE];
    const int tiles = (m + 3) / 4, whole = tiles * (tiles + 1) / 2, wide = m + 1;
    int a = 0, b = threadIdx.x;  // tile (a, b), a <= b; b == tiles: y's column
    while (a < tiles && b >= tiles - a) b -= tiles - a++;
    b += a;
    bool works = threadIdx.x < whole;
    const bool right = !works && threadIdx.x < whole + tiles;
    if (right) {
        a = threadIdx.x - whole;
        b = tiles;
        works = true;
    }
    if (!works) a = b = 0;
    double sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = 0.0;
    }
    const int begin = blockIdx.x * rows_of_block, end = begin + rows_of_block < n ? begin + rows_of_block : n;
    const int columns = 4 * tiles;
    for (int first = begin; first < end; first += WW_OLS_ROWS) {
        __syncthreads();
#pragma unroll 4
        for (int row = threadIdx.x / 32; row < WW_OLS_ROWS; row += WW_OLS_THREADS / 32) {
            for (int column = threadIdx.x % 32; column < columns; column += 32) {
                rows[row][column] = first + row < end && column < m ? (double)x[(size_t)(first + row) * m + column] : 0.0;
            }
        }
        for (int row = threadIdx.x; row < WW_OLS_ROWS; row += WW_OLS_THREADS) rows[row][columns] = first + row < end ? (double)y[first + row] : 0.0;
        __syncthreads();
        if (right) {
            for (int row = 0; row < WW_OLS_ROWS; ++row) {
                const double other = rows[row][columns];
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[i][0] += rows[row][a + tiles * i] * other;
            }
        } else {
#pragma unroll 2
            for (int row = 0; row < WW_OLS_ROWS; ++row) {
                double left[4], other[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) left[i] = rows[row][a + tiles * i];
#pragma unroll
                for (int j = 0; j < 4; ++j) other[j] = rows[row][b + tiles * j];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
#pragma unroll
                    for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * other[j];
                }
            }
        }
    }
    double* own = parts + (size_t)blockIdx.x * m * wide;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = a + tiles * i, column = right ? m : b + tiles * j;
            if (works && row < m && (right ? j == 0 : column < m)) own[row * wide + column] = sum[i][j];
        }
    }
}

// A warp for each element; of two that mirror one another, for the one that the blocks formed.
static __global__ void ww_ols_add(const double* __restrict__ parts, double* __restrict__ gram, int blocks, int m) {
    const int wide = m + 1, size = m * wide, lane = threadIdx.x % 32, at = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int row = at / wide, column = at % wide;
    const int tiles = (m + 3) / 4, a = row % tiles, b = column % tiles;
    if (at >= size || (column < m && a > b)) return;
    double sum = 0.0;
    for (int block = lane; block < blocks; block += 32) sum += parts[(size_t)block * size + at];
#pragma unroll
    for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
    if (lane == 0) {
        gram[at] = sum;
        if (column < m && a < b) gram[column * wide + row] = sum;
    }
}

static __global__ void __launch_bounds__(512) ww_ols_solve(const double* __restrict__ gram, float* __restrict__ beta, int m) {
    __shared__ double g[WW_OLS_MOST * (WW_OLS_MOST + 1)];
    const int wide = m + 1;
    for (int at = threadIdx.x; at < m * wide; at += blockDim.x) g[at] = gram[at];
    __syncthreads();
    for (int p = 0; p < m; ++p) {  // Gauss and Jordan: every other row loses its column p
        const double pivot = 1.0 / g[p * wide + p];
        const int columns = wide - p - 1;
        for (int at = threadIdx.x; at < m * columns; at += blockDim.x) {
            const int row = at / columns, column = p + 1 + at % columns;
            if (row != p) g[row * wide + column] -= g[row * wide + p] * pivot * g[p * wide + column];
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < m; i += blockDim.x) beta[i] = (float)(g[i * wide + m] / g[i * wide + i]);
}

static void ww_least_squares(const float* x, const float* y, float* beta, int n, int m) {  // 1 <= m <= 64
    const int most = (n + WW_OLS_ROWS - 1) / WW_OLS_ROWS, wanted = most < WW_OLS_BLOCKS ? most : WW_OLS_BLOCKS;
    int each = (n + wanted - 1) / wanted;
    each = (each + WW_OLS_ROWS - 1) / WW_OLS_ROWS * WW_OLS_ROWS;
    const int blocks = (n + each - 1) / each, size = m * (m + 1);
    double* parts = 0;
    cudaMallocAsync(&parts, (size_t)(blocks + 1) * size * sizeof(double), 0);
    double* gram = parts + (size_t)blocks * size;
    ww_ols_gram<<<blocks, WW_OLS_THREADS>>>(x, y, parts, n, m, each);
    ww_ols_add<<<(size + 7) / 8, 256>>>(parts, gram, blocks, m);
    ww_ols_solve<<<1, 512>>>(gram, beta, m);
    cudaFreeAsync(parts, 0);
}
