// C = leaky_relu(A B) of halves, row major, sizes multiples of 128.
#include "half_product.cuh"

extern "C" __global__ void __launch_bounds__(product::THREADS, 2)
    matmul_leakyrelu(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C, int N, int K) {
    extern __shared__ __align__(16) __half shared[];
    product::Sums sums;
    product::multiply(sums, shared, A + (size_t)blockIdx.y * product::TILE * K, B + blockIdx.x * product::TILE, N, K);
    __half* out = C + (size_t)blockIdx.y * product::TILE * N + blockIdx.x * product::TILE;
    product::store(sums, out, N, [](float sum) { return sum > 0 ? sum : 0.01f * sum; });
}
