// C = A B in float32, row major, sizes multiples of 128 (columns of A: of 8). A block makes 128 x 128, a thread 8 x 8; two tiles in shared memory.
constexpr int TILE = 128, DEPTH = 8;

extern "C" __global__ void __launch_bounds__(256, 2) sgemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N, int K) {
    __shared__ float a_tile[2][DEPTH][TILE], b_tile[2][DEPTH][TILE];
    const int t = threadIdx.x, row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    const int a_row = t >> 1, a_column = (t & 1) * 4, b_row = t >> 5, b_column = (t & 31) * 4;
    const float* a_next = A + (size_t)(row + a_row) * K + a_column;
    const float* b_next = B + (size_t)b_row * N + column + b_column;
    const int y = (t >> 4) * 4, x = (t & 15) * 4;
    float sum[8][8] = {};
    float4 a_loaded = *(const float4*)a_next, b_loaded = *(const float4*)b_next;
    int stage = 0;
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int k = 0; k < K; k += DEPTH, stage ^= 1) {
        a_tile[stage][a_column][a_row] = a_loaded.x, a_tile[stage][a_column + 1][a_row] = a_loaded.y;
        a_tile[stage][a_column + 2][a_row] = a_loaded.z, a_tile[stage][a_column + 3][a_row] = a_loaded.w;
        *(float4*)&b_tile[stage][b_row][b_column] = b_loaded;
        __syncthreads();
        if (k + DEPTH < K) {
            a_loaded = *(const float4*)(a_next + k + DEPTH);
            b_loaded = *(const float4*)(b_next + (size_t)(k + DEPTH) * N);
        }
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            float a[8], b[8];
            *(float4*)a = *(float4*)&a_tile[stage][d][y], *(float4*)(a + 4) = *(float4*)&a_tile[stage][d][y + 64];
            *(float4*)b = *(float4*)&b_tile[stage][d][x], *(float4*)(b + 4) = *(float4*)&b_tile[stage][d][x + 64];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += a[i] * b[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float* out = C + (size_t)(row + (i < 4 ? y + i : 60 + y + i)) * N + column + x;
        *(float4*)out = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        *(float4*)(out + 64) = make_float4(sum[i][4], sum[i][5], sum[i][6], sum[i][7]);
    }
}
