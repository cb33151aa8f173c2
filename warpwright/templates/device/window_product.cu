// A filter slid over a plane, without padding: out[y, x] = sum over i, j of image[y + i, x + j] * filter[i, j].
//
// A block has 128 columns of outputs and eight times WW_WIN_EACH rows, whose part of the image and the filter lie in shared memory. A thread has WW_WIN_EACH
// outputs in each of four neighbouring columns; it goes down the rows of the image, and what it reads of one serves all outputs whose window has it.
// Sums are formed in float32, in the order of i, then j. Least work: 2 * height * width * rows * columns operations.

#define WW_WIN_ROWS 9     // tune: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; of the filter
#define WW_WIN_COLUMNS 9  // tune: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
#define WW_WIN_EACH 8     // tune: 4 8

static const int WW_WIN_THREADS = 256, WW_WIN_TALL = 8 * WW_WIN_EACH + WW_WIN_ROWS - 1, WW_WIN_READ = (WW_WIN_COLUMNS + 6) / 4 * 4;  // of an image's row
static const int WW_WIN_WIDE = 124 + WW_WIN_READ, WW_WIN_LONG = (WW_WIN_COLUMNS + 3) / 4 * 4;
static const int WW_WIN_SHARED = (WW_WIN_TALL * WW_WIN_WIDE + WW_WIN_ROWS * WW_WIN_LONG) * 4;  // bytes

static __global__ void __launch_bounds__(WW_WIN_THREADS, 2)
ww_win_kernel(const float* __restrict__ image, const float* __restrict__ filter, float* __restrict__ out, int height, int width) {
    extern __shared__ __align__(16) float ww_win_memory[];
    float *tile = ww_win_memory, *weights = tile + WW_WIN_TALL * WW_WIN_WIDE;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, top = blockIdx.y * (8 * WW_WIN_EACH), side = blockIdx.x * 128;
    for (int at = threadIdx.x; at < WW_WIN_ROWS * WW_WIN_LONG; at += WW_WIN_THREADS) {
        const int row = at / WW_WIN_LONG, column = at % WW_WIN_LONG;
        weights[at] = column < WW_WIN_COLUMNS ? filter[row * WW_WIN_COLUMNS + column] : 0.0f;
    }
    for (int row = warp; row < WW_WIN_TALL; row += 8) {
        const int y = top + row < height ? top + row : height - 1;  // beyond the image: read, and used by no output
#pragma unroll
        for (int column = lane; column < WW_WIN_WIDE; column += 32) {
            const int x = side + column < width ? side + column : width - 1;
            tile[row * WW_WIN_WIDE + column] = image[(size_t)y * width + x];
        }
    }
    __syncthreads();
    float sum[WW_WIN_EACH][4];
#pragma unroll
    for (int o = 0; o < WW_WIN_EACH; ++o) sum[o][0] = sum[o][1] = sum[o][2] = sum[o][3] = 0.0f;
#pragma unroll
    for (int r = 0; r < WW_WIN_EACH + WW_WIN_ROWS - 1; ++r) {
        float own[WW_WIN_READ];
#pragma unroll
        for (int j = 0; j < WW_WIN_READ; j += 4) {
            const float4 four = *(const float4*)(tile + (warp * WW_WIN_EACH + r) * WW_WIN_WIDE + 4 * lane + j);
            own[j] = four.x;
            own[j + 1] = four.y;
            own[j + 2] = four.z;
            own[j + 3] = four.w;
        }
#pragma unroll
        for (int o = 0; o < WW_WIN_EACH; ++o) {
            const int i = r - o;
            if (i >= 0 && i < WW_WIN_ROWS) {
#pragma unroll
                for (int j = 0; j < WW_WIN_COLUMNS; ++j) {
                    const float weight = weights[i * WW_WIN_LONG + j];
#pragma unroll
                    for (int e = 0; e < 4; ++e) sum[o][e] += own[j + e] * weight;
                }
            }
        }
    }
    const int last = height - WW_WIN_ROWS, end = width - WW_WIN_COLUMNS, x = side + 4 * lane;
#pragma unroll
    for (int o = 0; o < WW_WIN_EACH; ++o) {
        const int y = top + warp * WW_WIN_EACH + o;
        float* to = out + (size_t)y * (end + 1) + x;
        if (y <= last && x + 3 <= end && (size_t)to % 16 == 0) {
            *(float4*)to = make_float4(sum[o][0], sum[o][1], sum[o][2], sum[o][3]);
        } else if (y <= last) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                if (x + e <= end) to[e] = sum[o][e];
            }
        }
    }
}

static void ww_window_product(const float* image, const float* filter, float* out, int height, int width) {  // of at least the filter's size
    const dim3 grid((width - WW_WIN_COLUMNS + 128) / 128, (height - WW_WIN_ROWS + 8 * WW_WIN_EACH) / (8 * WW_WIN_EACH));
    cudaFuncSetAttribute(ww_win_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, WW_WIN_SHARED);
    ww_win_kernel<<<grid, WW_WIN_THREADS, WW_WIN_SHARED>>>(image, filter, out, height, width);
}
