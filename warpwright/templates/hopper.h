// What kernels for Hopper share: barriers in shared memory, copies of boxes by the bulk copy engine, products of warpgroups by tensor cores.
// tests/helpers/hopper_cpu.py runs these statements on a CPU. Macro WATCHDOG: a wait of two seconds traps.

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap {
    char opaque[128];
};

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// ---- barriers -------------------------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void barrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barriers_begin() {  // before the other threads, and the copy engine, see them
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
    u32 done;
#ifdef WATCHDOG
    const u64 start = nanoseconds();
#endif
    do {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
#ifdef WATCHDOG
        if (nanoseconds() - start > 2000000000ull) __trap();
#endif
    } while (!done);
}

__device__ __forceinline__ void release_one(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void release(u32 barrier, int lane) {  // one lane a warp
    if (lane == 0) release_one(barrier);
}

// Barriers of the block by number (0 is __syncthreads'): `meet` waits until `threads` have met or passed, `pass` does not wait.
__device__ __forceinline__ void meet(int number, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory"); }
__device__ __forceinline__ void pass(int number, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory"); }

// ---- copies ---------------------------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void fetch_map(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

__device__ __forceinline__ void load(u32 to, const TensorMap& map, int x, int y, int z, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to), "l"(&map), "r"(barrier), "r"(x),
        "r"(y), "r"(z)
        : "memory");
}

__device__ __forceinline__ void load(u32 to, const TensorMap& map, int x, int y, int z, int w, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to), "l"(&map), "r"(barrier),
        "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

// ---- tensor cores ---------------------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT>
__device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Shared-memory descriptor of rows of 128 bytes with the 128-byte swizzle, which are the products' rows (of A) or columns (of B); eight rows are
// 1,024 bytes.
__device__ __forceinline__ u64 descriptor(u32 address) {
    return (1ull << 62) | (64ull << 32) | (1ull << 16) | (u64)((address & 0x3FFFF) >> 4);
}

// The same of a B whose rows of 128 bytes are the products' terms, 64 columns of 16 bits each; `panel`: bytes from 64 columns to the next 64.
__device__ __forceinline__ u64 descriptor_of_terms(u32 address, u32 panel) {
    return (1ull << 62) | (64ull << 32) | ((u64)(panel >> 4) << 16) | (u64)((address & 0x3FFFF) >> 4);
}

// After a wait: nothing that reads these sums moves before it.
template <int COUNT>
__device__ __forceinline__ void settle(float (&c)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(c[i])::"memory");
}

template <int COUNT>
__device__ __forceinline__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
