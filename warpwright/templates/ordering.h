// Sorting in registers and in a block's shared memory: what the kernels of domains/graph/cuda/{sorts,select}.py call, after fused_math.h.
// An element is 64 bits: the upper half is a number of the element's order, the lower one its place, so that no two are equal.
typedef unsigned long long Ranked;

// A float as an unsigned number of the same order: minus zero below zero, NaN the largest.
__device__ __forceinline__ unsigned ordered(float x) {
    const unsigned bits = __float_as_uint(x);
    return x != x ? 0xffffffffu : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ Ranked ranked(unsigned key, unsigned low) { return (Ranked)key << 32 | low; }

// One element of each pair that is `stride` apart gives way to the other; `up`: the least comes first.
template <int E>
__device__ __forceinline__ void exchanged(Ranked (&a)[E], int stride, int e, bool up) {
    const Ranked one = a[e], two = a[e + stride];
    const bool turned = (one > two) == up;
    a[e] = turned ? two : one;
    a[e + stride] = turned ? one : two;
}
// Sorts a thread's elements, which rise and then fall.
template <int E>
__device__ __forceinline__ void merged(Ranked (&a)[E], bool up) {
#pragma unroll
    for (int stride = E / 2; stride > 0; stride /= 2) {
#pragma unroll
        for (int e = 0; e < E; ++e) {
            if (!(e & stride)) exchanged<E>(a, stride, e, up);
        }
    }
}
// Bitonic sort of the E elements of each of T threads, the least first; t: this thread's number among them. A warp exchanges by shuffles, warps by
// `shared`, room for E * T elements: all threads of the block come here together.
template <int E, int T>
__device__ __forceinline__ void sorted(Ranked (&a)[E], Ranked* shared, int t) {
#pragma unroll
    for (int size = 2; size < E; size *= 2) {
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2) {
#pragma unroll
            for (int e = 0; e < E; ++e) {
                if (!(e & stride)) exchanged<E>(a, stride, e, !(e & size));
            }
        }
    }
    merged<E>(a, !(t & 1));
    for (int size = 2; size <= T; size *= 2) {
        const bool up = !(t & size);
        for (int apart = size / 2; apart > 0; apart /= 2) {
            const bool least = !(t & apart) == up;
            if (T > 32 && apart >= 32) {
                __syncthreads();
#pragma unroll
                for (int e = 0; e < E; ++e) shared[e * T + t] = a[e];
                __syncthreads();
            }
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const Ranked other = T > 32 && apart >= 32 ? shared[e * T + (t ^ apart)] : __shfl_xor_sync(0xffffffffu, a[e], apart);
                a[e] = (other < a[e]) == least ? other : a[e];
            }
        }
        merged<E>(a, up);
    }
}

// Sorts `size` elements of a block's shared memory, a power of two, the largest first. A warp has neighbouring pairs: within 64 elements it waits for itself.
__device__ __forceinline__ void sort_held(Ranked* held, int size) {
    __syncthreads();
    for (int length = 2; length <= size; length *= 2) {
        for (int apart = length / 2; apart > 0; apart /= 2) {
            for (int pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
                const int at = 2 * pair - (pair & (apart - 1));
                const Ranked one = held[at], two = held[at + apart];
                if ((one < two) == !(at & length)) {
                    held[at] = two;
                    held[at + apart] = one;
                }
            }
            if (apart > 32 || (apart == 1 && length > 32)) {
                __syncthreads();
            } else {
                __syncwarp();
            }
        }
    }
    __syncthreads();
}
// The K largest of up to B held elements, sorted; returns the least that is worth holding less one, 0 while there are fewer than K.
template <int K, int B>
__device__ __forceinline__ Ranked settled(Ranked* held, int* count) {
    __syncthreads();
    const int seen = *count;
    int size = 64;
    while (size < seen || size < K) size *= 2;
    for (int i = seen + threadIdx.x; i < size; i += blockDim.x) held[i] = 0;
    sort_held(held, size);
    if (threadIdx.x == 0 && seen > K) *count = K;
    __syncthreads();
    return held[K - 1];
}
// Holds those of E elements a thread that are above `least`, the K-th largest of those seen (0: no element).
template <int K, int B, int E>
__device__ __forceinline__ void taken(const Ranked (&a)[E], Ranked* held, int* count, Ranked& least) {
    __syncthreads();
    const int before = *count;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < E; ++e) {
        if (a[e] > least) {
            const int at = atomicAdd(count, 1);
            if (at < B) held[at] = a[e];
        }
    }
    __syncthreads();
    if (*count <= B) return;
    __syncthreads();  // no room for all: those held are settled, and then these come, as many at once as there are threads
    if (threadIdx.x == 0) *count = before;
    least = settled<K, B>(held, count);
#pragma unroll
    for (int e = 0; e < E; ++e) {
        if (*count > B - (int)blockDim.x) least = settled<K, B>(held, count);
        __syncthreads();
        if (a[e] > least) held[atomicAdd(count, 1)] = a[e];
        __syncthreads();
    }
}
