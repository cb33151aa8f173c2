// C[b] = A[b] B[b] of halves, row major, sizes multiples of 128; block z makes product z.
#include "half_product.cuh"

extern "C" __global__ void __launch_bounds__(product::THREADS, 2)
    batched_matmul(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C, int M, int N, int K) {
    extern __shared__ __align__(16) __half shared[];
    product::Sums sums;
    const size_t z = blockIdx.z;
    product::multiply(sums, shared, A + (z * M + blockIdx.y * product::TILE) * K, B + z * K * N + blockIdx.x * product::TILE, N, K);
    product::store(sums, C + (z * M + blockIdx.y * product::TILE) * N + blockIdx.x * product::TILE, N, [](float sum) { return sum; });
}
