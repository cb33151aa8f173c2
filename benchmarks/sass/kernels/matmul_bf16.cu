// C = A B^T of bfloat16, A [M, K] and B [N, K] row major, on the tensor cores of a warp group; blocks of 128 x 128.
#include "group_product.cuh"

extern "C" __global__ void __launch_bounds__(group::THREADS)
    matmul_bf16(const uint8_t* __restrict__ A, const uint8_t* __restrict__ B, __nv_bfloat16* __restrict__ C, int N, int K) {
    extern __shared__ uint8_t room[];
    const uint32_t shared = group::aligned(room);
    const size_t pitch = (size_t)K * 2;
    A += blockIdx.y * group::TILE * pitch, B += blockIdx.x * group::TILE * pitch;
    const int tiles = (int)(pitch / group::BYTES);
    for (int stage = 0; stage < group::STAGES - 1; stage++) {
        group::copy(shared + stage * group::STAGE, A + stage * group::BYTES, B + stage * group::BYTES, pitch);
        group::commit();
    }
    float sum[64];
#pragma unroll
    for (int i = 0; i < 64; i++) sum[i] = 0;
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int tile = 0; tile < tiles; tile++) {
        const uint32_t stage = shared + tile % group::STAGES * group::STAGE;
        const int next = tile + group::STAGES - 1;
        group::arrived();
        group::fence();
        const uint64_t a = group::tile_of(stage + threadIdx.x / 128 * 64 * group::BYTES), b = group::tile_of(stage + group::OPERAND);
#pragma unroll
        for (int k = 0; k < 4; k++) group::multiply_bf16(sum, a + 2 * k, b + 2 * k, 1);
        if (next < tiles) group::copy(shared + next % group::STAGES * group::STAGE, A + next * group::BYTES, B + next * group::BYTES, pitch);
        group::commit();
        group::wait(sum);
    }
    group::store(sum, C + (size_t)blockIdx.y * group::TILE * N + blockIdx.x * group::TILE, N);
}
