// C = A B^T of e4m3 with a scale for each row and 128 columns of A, and for each 128 x 128 of B (block scaling): every 128 columns' product is scaled and
// added in float32 beside the tensor cores. A [M, K] and B [N, K] row major, scales [K / 128, M] and [K / 128, N / 128].
#include "group_product.cuh"

extern "C" __global__ void __launch_bounds__(group::THREADS)
    matmul_fp8(const uint8_t* __restrict__ A, const uint8_t* __restrict__ B, const float* __restrict__ a_scale, const float* __restrict__ b_scale,
               __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ uint8_t room[];
    const uint32_t shared = group::aligned(room);
    const size_t pitch = K;
    A += blockIdx.y * group::TILE * pitch, B += blockIdx.x * group::TILE * pitch;
    a_scale += blockIdx.y * group::TILE + group::row(), b_scale += blockIdx.x;
    const int tiles = K / group::BYTES;
    for (int stage = 0; stage < group::STAGES - 1; stage++) {
        group::copy(shared + stage * group::STAGE, A + stage * group::BYTES, B + stage * group::BYTES, pitch);
        group::commit();
    }
    float sum[64], part[64];
#pragma unroll
    for (int i = 0; i < 64; i++) sum[i] = 0;
#ifdef UNROLL
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
#endif
    for (int tile = 0; tile < tiles; tile++) {
        const uint32_t stage = shared + tile % group::STAGES * group::STAGE;
        const int next = tile + group::STAGES - 1;
        const float of_b = b_scale[(size_t)tile * (N / 128)], low = a_scale[(size_t)tile * M] * of_b, high = a_scale[(size_t)tile * M + 8] * of_b;
        group::arrived();
        group::fence();
        const uint64_t a = group::tile_of(stage + threadIdx.x / 128 * 64 * group::BYTES), b = group::tile_of(stage + group::OPERAND);
#pragma unroll
        for (int k = 0; k < 4; k++) group::multiply_e4m3(part, a + 2 * k, b + 2 * k, k);
        if (next < tiles) group::copy(shared + next % group::STAGES * group::STAGE, A + next * group::BYTES, B + next * group::BYTES, pitch);
        group::commit();
        group::wait(part);
#pragma unroll
        for (int j = 0; j < 64; j++) sum[j] += part[j] * (j & 2 ? high : low);
    }
    group::store(sum, C + (size_t)blockIdx.y * group::TILE * N + blockIdx.x * group::TILE, N);
}
