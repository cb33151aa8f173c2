// transpose_tile(transpose_kernel)
static inline dim3 ww_cover(dim3 grid, dim3 block, unsigned x, unsigned y) {
    return dim3((grid.x * block.x + x - 1) / x, (grid.y * block.y + y - 1) / y, grid.z * block.z);
}
__global__ void transpose_kernel(const float* in, float* out, int rows, int columns) {
    __shared__ float ww_tile[32][33];
    #pragma unroll
    for (int ww_turn = 0; ww_turn < 32; ww_turn += 8) {
        int x = blockIdx.x * 32 + threadIdx.x;
        int y = blockIdx.y * 32 + threadIdx.y + ww_turn;

        if (x < columns && y < rows) ww_tile[threadIdx.y + ww_turn][threadIdx.x] = in[y * columns + x];
    }
    __syncthreads();
    #pragma unroll
    for (int ww_turn = 0; ww_turn < 32; ww_turn += 8) {
        int y = blockIdx.y * 32 + threadIdx.x;
        int x = blockIdx.x * 32 + threadIdx.y + ww_turn;

        if (x < columns && y < rows) out[x * rows + y] = ww_tile[threadIdx.x][threadIdx.y + ww_turn];
    }
}

extern "C" void transpose(const float* in, float* out, int rows, int columns) {
    dim3 block(16, 16);
    dim3 grid((columns + 15) / 16, (rows + 15) / 16);
    transpose_kernel<<<ww_cover(grid, block, 32, 32), dim3(32, 8)>>>(in, out, rows, columns);
}
