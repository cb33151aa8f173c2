// product_tile(matmul_kernel, rows=8, columns=8, depth=16)
static inline dim3 ww_cover(dim3 grid, dim3 block, unsigned x, unsigned y) {
    return dim3((grid.x * block.x + x - 1) / x, (grid.y * block.y + y - 1) / y, grid.z * block.z);
}
__global__ void __launch_bounds__(256) matmul_kernel(const float* A, const float* B, float* C, int M, int N, int K) {


    __shared__ float ww_tile_0[16][132];
    __shared__ float ww_tile_1[16][132];
    float ww_sums[8][8];
    #pragma unroll
    for (int ww_r = 0; ww_r < 8; ++ww_r)
        #pragma unroll
        for (int ww_c = 0; ww_c < 8; ++ww_c) ww_sums[ww_r][ww_c] = 0.0f;
    const int ww_thread = threadIdx.y * 16 + threadIdx.x;
    const int ww_end = K;
    for (int ww_step = 0; ww_step < ww_end; ww_step += 16) {
        #pragma unroll
        for (int ww_at = ww_thread; ww_at < 2048; ww_at += 256) {
            const int ww_deep = ww_at % 16, ww_wide = ww_at / 16;
            const int ww_place = blockIdx.y * 128 + ww_wide;
            ww_tile_0[ww_deep][ww_wide] = ww_step + ww_deep < ww_end && (ww_place < M) ? A[ww_place * K + (ww_step + ww_deep)] : 0;
        }
        #pragma unroll
        for (int ww_at = ww_thread; ww_at < 2048; ww_at += 256) {
            const int ww_deep = ww_at / 128, ww_wide = ww_at % 128;
            const int ww_place = blockIdx.x * 128 + ww_wide;
            ww_tile_1[ww_deep][ww_wide] = ww_step + ww_deep < ww_end && (ww_place < N) ? B[(ww_step + ww_deep) * N + ww_place] : 0;
        }
        __syncthreads();
        if (ww_step + 16 <= ww_end) {
            #pragma unroll
            for (int ww_k = 0; ww_k < 16; ++ww_k) {
                float ww_own_0[8];
                #pragma unroll
                for (int ww_e = 0; ww_e < 8; ++ww_e) ww_own_0[ww_e] = ww_tile_0[ww_k][(ww_e / 4) * 64 + threadIdx.y * 4 + ww_e % 4];
                float ww_own_1[8];
                #pragma unroll
                for (int ww_e = 0; ww_e < 8; ++ww_e) ww_own_1[ww_e] = ww_tile_1[ww_k][(ww_e / 4) * 64 + threadIdx.x * 4 + ww_e % 4];
                #pragma unroll
                for (int ww_r = 0; ww_r < 8; ++ww_r)
                    #pragma unroll
                    for (int ww_c = 0; ww_c < 8; ++ww_c) {
            ww_sums[ww_r][ww_c] += ww_own_0[ww_r] * ww_own_1[ww_c];
                    }
            }
        } else {
            for (int ww_k = 0; ww_k < ww_end - ww_step; ++ww_k) {
                float ww_own_0[8];
                #pragma unroll
                for (int ww_e = 0; ww_e < 8; ++ww_e) ww_own_0[ww_e] = ww_tile_0[ww_k][(ww_e / 4) * 64 + threadIdx.y * 4 + ww_e % 4];
                float ww_own_1[8];
                #pragma unroll
                for (int ww_e = 0; ww_e < 8; ++ww_e) ww_own_1[ww_e] = ww_tile_1[ww_k][(ww_e / 4) * 64 + threadIdx.x * 4 + ww_e % 4];
                #pragma unroll
                for (int ww_r = 0; ww_r < 8; ++ww_r)
                    #pragma unroll
                    for (int ww_c = 0; ww_c < 8; ++ww_c) {
            ww_sums[ww_r][ww_c] += ww_own_0[ww_r] * ww_own_1[ww_c];
                    }
            }
        }
        __syncthreads();
    }
    #pragma unroll
    for (int ww_r = 0; ww_r < 8; ++ww_r)
        #pragma unroll
        for (int ww_c = 0; ww_c < 8; ++ww_c) {
            const int row = blockIdx.y * 128 + (ww_r / 4) * 64 + threadIdx.y * 4 + ww_r % 4;
            const int col = blockIdx.x * 128 + (ww_c / 4) * 64 + threadIdx.x * 4 + ww_c % 4;
            if (row < M && col < N) {
        C[row * N + col] = ww_sums[ww_r][ww_c];
            }
        }
}

extern "C" void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 block(16, 16);
    dim3 grid((N + 15) / 16, (M + 15) / 16);
    matmul_kernel<<<ww_cover(grid, block, 128, 128), dim3(16, 16)>>>(A, B, C, M, N, K);
}
