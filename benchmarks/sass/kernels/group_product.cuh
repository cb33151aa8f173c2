// Products of a warp group (wgmma, sm_90a): A [M, K] and B [N, K], row major, both with 128 bytes of a row in a tile of 128 rows. Tiles come by cp.async
// into four stages, swizzled as the 128-byte layout wants it (PTX ISA, asynchronous warpgroup matrix): chunk c of row r stands at c ^ r % 8.
#pragma once
#include <cuda_bf16.h>
#include <stdint.h>

namespace group {
constexpr int TILE = 128, BYTES = 128, STAGES = 4, THREADS = 256, OPERAND = TILE * BYTES, STAGE = 2 * OPERAND, SHARED_BYTES = STAGES * STAGE + 1024;

__device__ __forceinline__ uint32_t aligned(void* shared) { return ((uint32_t)__cvta_generic_to_shared(shared) + 1023) & ~1023u; }

// Copy one tile of A and of B; `pitch`: bytes of a row.
__device__ __forceinline__ void copy(uint32_t stage, const uint8_t* A, const uint8_t* B, size_t pitch) {
#pragma unroll
    for (int i = threadIdx.x; i < TILE * 8; i += THREADS) {
        const int row = i / 8, chunk = i % 8;
        const uint32_t to = stage + row * BYTES + ((chunk ^ (row & 7)) << 4);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(A + row * pitch + chunk * 16));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + OPERAND), "l"(B + row * pitch + chunk * 16));
    }
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }

// Wait until the oldest stage is there, for all threads and for the products.
__device__ __forceinline__ void arrived() {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
}

// An operand's tile: start, 1024 bytes between groups of eight rows, 128-byte swizzle.
__device__ __forceinline__ uint64_t tile_of(uint32_t address) { return (uint64_t)(address >> 4) | (uint64_t)1 << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62; }

#define GROUP_FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define GROUP_SUMS                                                                                                                        \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"             \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
#define GROUP_MULTIPLY(name, shape, more)                                                                                                 \
    __device__ __forceinline__ void name(float (&d)[64], uint64_t a, uint64_t b, int add) {                                               \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned." shape " " GROUP_SUMS "%64, %65, p, 1, 1" more "; }" \
                     : GROUP_FOUR(0), GROUP_FOUR(4), GROUP_FOUR(8), GROUP_FOUR(12), GROUP_FOUR(16), GROUP_FOUR(20), GROUP_FOUR(24),        \
                       GROUP_FOUR(28), GROUP_FOUR(32), GROUP_FOUR(36), GROUP_FOUR(40), GROUP_FOUR(44), GROUP_FOUR(48), GROUP_FOUR(52),     \
                       GROUP_FOUR(56), GROUP_FOUR(60)                                                                                     \
                     : "l"(a), "l"(b), "r"(add));                                                                                         \
    }
GROUP_MULTIPLY(multiply_bf16, "m64n128k16.f32.bf16.bf16", ", 0, 0")
GROUP_MULTIPLY(multiply_e4m3, "m64n128k32.f32.e4m3.e4m3", "")

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Wait until the products are in `sums`: nothing that reads them may come before.
__device__ __forceinline__ void wait(float (&sums)[64]) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

__device__ __forceinline__ int row() { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4; }

// Store a warp group's 64 x 128 sums; C points at the block's first row and column.
__device__ __forceinline__ void store(const float (&sum)[64], __nv_bfloat16* C, int N) {
    __nv_bfloat16* to = C + (size_t)row() * N + threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        *(__nv_bfloat162*)(to + j * 8) = __floats2bfloat162_rn(sum[4 * j], sum[4 * j + 1]);
        *(__nv_bfloat162*)(to + (size_t)8 * N + j * 8) = __floats2bfloat162_rn(sum[4 * j + 2], sum[4 * j + 3]);
    }
}
}  // namespace group
