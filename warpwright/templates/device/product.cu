// c = a b for row-major float32 matrices a [m, k], b [k, n]: tiles of WW_MM_ROWS x 128 outputs, 8 or 16 x 8 of them in the registers of a thread.
//
// While a block computes with one slice of both operands in shared memory the next is on its way to registers, and goes to the other half of shared memory:
// one barrier a slice. A warp has a quarter of the rows and half of the columns, so that four words of 16 bytes serve 64 products, or six 128. Sums are
// formed in float32, in the order of k.
// Least work: 2 * m * n * k operations.

#define WW_MM_STEP 8    // tune: 8 16; columns of a that a slice has (16 with 128 rows alone: shared memory)
#define WW_MM_ROWS 128  // tune: 128 256

static const int WW_MM_TILE = 128, WW_MM_THREADS = 256, WW_MM_GROUPS = WW_MM_ROWS / 64;  // of four rows that a thread has

template <bool WHOLE>
static __global__ void __launch_bounds__(WW_MM_THREADS, 256 / WW_MM_ROWS)
ww_mm_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[2][WW_MM_STEP][WW_MM_ROWS + 4];
    __shared__ float right[2][WW_MM_STEP][WW_MM_TILE + 4];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32;
    const int row = warp / 2 * (WW_MM_ROWS / 4) + lane / 8 * 4, column = warp % 2 * 64 + lane % 8 * 4;  // and 16 rows, 32 columns further on
    const int top = blockIdx.y * WW_MM_ROWS, side = blockIdx.x * WW_MM_TILE;
    const int a_row = t / (WW_MM_STEP / 4), a_k = t % (WW_MM_STEP / 4) * 4, b_k = t / 32, b_column = t % 32 * 4;
    const int a_turns = WW_MM_ROWS * WW_MM_STEP / 4 / WW_MM_THREADS, b_turns = WW_MM_TILE * WW_MM_STEP / 4 / WW_MM_THREADS;
    const int a_next = WW_MM_THREADS / (WW_MM_STEP / 4), b_next = WW_MM_THREADS / 32;
    float4 a_own[a_turns], b_own[b_turns];
    float sum[4 * WW_MM_GROUPS][8];
#pragma unroll
    for (int i = 0; i < 4 * WW_MM_GROUPS; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = 0.0f;
    }
    const int slices = (k + WW_MM_STEP - 1) / WW_MM_STEP;
    for (int slice = -1; slice < slices; ++slice) {
        const int half = slice & 1, first = (slice + 1) * WW_MM_STEP;
        if (slice + 1 < slices) {
#pragma unroll
            for (int turn = 0; turn < a_turns; ++turn) {
                const int r = top + a_row + turn * a_next, at = first + a_k;
                if (WHOLE) {
                    a_own[turn] = *(const float4*)(a + (size_t)r * k + at);
                } else {
                    a_own[turn].x = r < m && at < k ? a[(size_t)r * k + at] : 0.0f;
                    a_own[turn].y = r < m && at + 1 < k ? a[(size_t)r * k + at + 1] : 0.0f;
                    a_own[turn].z = r < m && at + 2 < k ? a[(size_t)r * k + at + 2] : 0.0f;
                    a_own[turn].w = r < m && at + 3 < k ? a[(size_t)r * k + at + 3] : 0.0f;
                }
            }
#pragma unroll
            for (int turn = 0; turn < b_turns; ++turn) {
                const int at = first + b_k + turn * b_next, s = side + b_column;
                if (WHOLE) {
                    b_own[turn] = *(const float4*)(b + (size_t)at * n + s);
                } else {
                    b_own[turn].x = at < k && s < n ? b[(size_t)at * n + s] : 0.0f;
                    b_own[turn].y = at < k && s + 1 < n ? b[(size_t)at * n + s + 1] : 0.0f;
                    b_own[turn].z = at < k && s + 2 < n ? b[(size_t)at * n + s + 2] : 0.0f;
                    b_own[turn].w = at < k && s + 3 < n ? b[(size_t)at * n + s + 3] : 0.0f;
                }
            }
        }
        if (slice >= 0) {
#pragma unroll
            for (int at = 0; at < WW_MM_STEP; ++at) {
                float rows[4 * WW_MM_GROUPS], columns[8];
#pragma unroll
                for (int i = 0; i < WW_MM_GROUPS; ++i) {
                    const float4 one = *(const float4*)&left[half][at][row + 16 * i];
                    rows[4 * i] = one.x;
                    rows[4 * i + 1] = one.y;
                    rows[4 * i + 2] = one.z;
                    rows[4 * i + 3] = one.w;
                }
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float4 two = *(const float4*)&right[half][at][column + 32 * i];
                    columns[4 * i] = two.x;
                    columns[4 * i + 1] = two.y;
                    columns[4 * i + 2] = two.z;
                    columns[4 * i + 3] = two.w;
                }
#pragma unroll
                for (int i = 0; i < 4 * WW_MM_GROUPS; ++i) {
#pragma unroll
                    for (int j = 0; j < 8; ++j) sum[i][j] += rows[i] * columns[j];
                }
            }
        }
        if (slice + 1 < slices) {
            const int other = (slice + 1) & 1;
#pragma unroll
            for (int turn = 0; turn < a_turns; ++turn) {
                left[other][a_k][a_row + turn * a_next] = a_own[turn].x;
                left[other][a_k + 1][a_row + turn * a_next] = a_own[turn].y;
                left[other][a_k + 2][a_row + turn * a_next] = a_own[turn].z;
                left[other][a_k + 3][a_row + turn * a_next] = a_own[turn].w;
            }
#pragma unroll
            for (int turn = 0; turn < b_turns; ++turn) *(float4*)&right[other][b_k + turn * b_next][b_column] = b_own[turn];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4 * WW_MM_GROUPS; ++i) {
        const int r = top + row + i / 4 * 16 + i % 4;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int s = side + column + 32 * j;
            if (WHOLE) {
                *(float4*)(c + (size_t)r * n + s) = make_float4(sum[i][4 * j], sum[i][4 * j + 1], sum[i][4 * j + 2], sum[i][4 * j + 3]);
            } else if (r < m) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    if (s + e < n) c[(size_t)r * n + s + e] = sum[i][4 * j + e];
                }
            }
        }
    }
}

static void ww_product(const float* a, const float* b, float* c, int m, int n, int k) {
    if (m <= 0 || n <= 0) return;
    const dim3 grid((n + WW_MM_TILE - 1) / WW_MM_TILE, (m + WW_MM_ROWS - 1) / WW_MM_ROWS);
    const bool whole = m % WW_MM_ROWS == 0 && n % WW_MM_TILE == 0 && k % WW_MM_STEP == 0 && ((size_t)a | (size_t)b | (size_t)c) % 16 == 0;
    if (whole) {
        ww_mm_kernel<true><<<grid, WW_MM_THREADS>>>(a, b, c, m, n, k);
    } else {
        ww_mm_kernel<false><<<grid, WW_MM_THREADS>>>(a, b, c, m, n, k);
    }
}
