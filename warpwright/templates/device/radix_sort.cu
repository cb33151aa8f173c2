// A vector in ascending order: four passes over digits of 8 bits, each of which reads and writes the vector once ("Onesweep", arXiv 2206.01784).
//
// A number is sorted by the unsigned one that has the same order; NaN is the largest. out may be x itself. One kernel counts the digits of all four passes; in a pass a
// block takes the next tile, ranks its keys by ballots within each warp, says how many of each digit it has, and looks back over the tiles before it for
// where its own begin. It writes by way of shared memory, so that keys of one digit go to memory side by side. Equal keys keep their order.
// Least traffic: 36 bytes an element (one read for the counts, then four times a read and a write).

#define WW_SORT_THREADS 256  // tune: 256 512
#define WW_SORT_EACH 16      // tune: 8 12 16 20; keys a thread
#define WW_SORT_WHOLE 0      // tune: 0 1; 0: elements are float32, 1: int32

static const int WW_SORT_BINS = 256;
static const unsigned WW_SORT_OWN = 1u << 30, WW_SORT_ALL = 2u << 30, WW_SORT_COUNT = (1u << 30) - 1;  // what a word is, and its count

static __device__ __forceinline__ unsigned ww_sort_key(unsigned bits) {
    if (WW_SORT_WHOLE) return bits ^ 0x80000000u;
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ unsigned ww_sort_bits(unsigned key) {
    if (WW_SORT_WHOLE) return key ^ 0x80000000u;
    return key & 0x80000000u ? key & 0x7fffffffu : ~key;
}

static __global__ void ww_sort_count(const unsigned* __restrict__ x, unsigned n, unsigned* counts) {
    __shared__ unsigned own[4 * WW_SORT_BINS];
    for (int at = threadIdx.x; at < 4 * WW_SORT_BINS; at += blockDim.x) own[at] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned key = ww_sort_key(x[i]);
#pragma unroll
        for (int pass = 0; pass < 4; ++pass) atomicAdd(&own[pass * WW_SORT_BINS + (key >> (8 * pass) & 255u)], 1u);
    }
    __syncthreads();
    for (int at = threadIdx.x; at < 4 * WW_SORT_BINS; at += blockDim.x) {
        if (own[at]) atomicAdd(&counts[at], own[at]);
    }
}

// Sum of the values of all threads before this one, in a block of WW_SORT_BINS threads at the front: `parts` has a place for each of their warps.
static __device__ __forceinline__ unsigned ww_sort_before(unsigned value, unsigned* parts) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned sum = value;
#pragma unroll
    for (int far = 1; far < 32; far *= 2) {
        const unsigned left = __shfl_up_sync(0xffffffffu, sum, far);
        if (lane >= far) sum += left;
    }
    if (lane == 31 && warp < WW_SORT_BINS / 32) parts[warp] = sum;
    __syncthreads();
    unsigned before = sum - value;
    for (int w = 0; w < WW_SORT_BINS / 32; ++w) {
        if (w < warp) before += parts[w];
    }
    __syncthreads();
    return before;
}

static __global__ void ww_sort_starts(unsigned* counts) {
    __shared__ unsigned parts[WW_SORT_BINS / 32];
    const int at = blockIdx.x * WW_SORT_BINS + threadIdx.x;
    counts[at] = ww_sort_before(counts[at], parts);
}

static __global__ void __launch_bounds__(WW_SORT_THREADS)
ww_sort_pass(const unsigned* from, unsigned* to, unsigned n, int pass, const unsigned* __restrict__ starts, unsigned* words, unsigned* next) {
    __shared__ unsigned keys[WW_SORT_THREADS * WW_SORT_EACH];
    __shared__ unsigned ranks[WW_SORT_THREADS / 32 * WW_SORT_BINS];
    __shared__ unsigned local[WW_SORT_BINS], target[WW_SORT_BINS], parts[WW_SORT_BINS / 32];
    __shared__ unsigned chosen;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, shift = 8 * pass;
    if (threadIdx.x == 0) chosen = atomicAdd(next, 1u);
    for (int at = threadIdx.x; at < WW_SORT_THREADS / 32 * WW_SORT_BINS; at += WW_SORT_THREADS) ranks[at] = 0;
    __syncthreads();
    const unsigned tile = chosen, first = tile * (WW_SORT_THREADS * WW_SORT_EACH), begin = first + warp * (32 * WW_SORT_EACH) + lane;
    unsigned* counts = ranks + warp * WW_SORT_BINS;
    unsigned key[WW_SORT_EACH], rank[WW_SORT_EACH];
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) {
        const unsigned at = begin + e * 32;
        key[e] = 0xffffffffu;  // beyond the end: behind everything, as the last of its digit
        if (at < n) key[e] = pass == 0 ? ww_sort_key(from[at]) : from[at];
    }
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) {
        const unsigned digit = key[e] >> shift & 255u;
        unsigned alike = 0xffffffffu;  // lanes of the same digit
#pragma unroll
        for (int bit = 0; bit < 8; ++bit) {
            const bool set = digit >> bit & 1u;
            const unsigned lanes = __ballot_sync(0xffffffffu, set);
            alike &= set ? lanes : ~lanes;
        }
        const unsigned seen = counts[digit];
        __syncwarp();
        if (lane == __ffs((int)alike) - 1) counts[digit] = seen + __popc(alike);
        __syncwarp();
        rank[e] = seen + __popc(alike & ((1u << lane) - 1u));
    }
    __syncthreads();
    unsigned own = 0;
    const int bin = threadIdx.x;
    if (bin < WW_SORT_BINS) {
        for (int w = 0; w < WW_SORT_THREADS / 32; ++w) {
            const unsigned here = ranks[w * WW_SORT_BINS + bin];
            ranks[w * WW_SORT_BINS + bin] = own;
            own += here;
        }
        atomicExch(&words[tile * WW_SORT_BINS + bin], own | (tile == 0 ? WW_SORT_ALL : WW_SORT_OWN));
    }
    const unsigned place = ww_sort_before(own, parts);
    if (bin < WW_SORT_BINS) {
        unsigned before = 0;
        for (unsigned t = tile; t > 0; --t) {
            unsigned word;
            do {
                word = *(volatile unsigned*)(words + (t - 1) * WW_SORT_BINS + bin);
            } while (word == 0);
            before += word & WW_SORT_COUNT;
            if (word & WW_SORT_ALL) break;
        }
        if (tile > 0) atomicExch(&words[tile * WW_SORT_BINS + bin], (before + own) | WW_SORT_ALL);
        local[bin] = place;
        target[bin] = starts[bin] + before - place;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) {
        const unsigned digit = key[e] >> shift & 255u;
        keys[local[digit] + counts[digit] + rank[e]] = key[e];
    }
    __syncthreads();
    const unsigned here = n - first < WW_SORT_THREADS * WW_SORT_EACH ? n - first : WW_SORT_THREADS * WW_SORT_EACH;
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) {
        const unsigned at = e * WW_SORT_THREADS + threadIdx.x;
        if (at < here) {
            const unsigned sorted = keys[at];
            const unsigned go = target[sorted >> shift & 255u] + at;
            to[go] = pass == 3 ? ww_sort_bits(sorted) : sorted;
        }
    }
}

static void ww_sort(const void* x, void* out, long long n) {  // n below 2^30, as counts have 30 bits
    if (n <= 0) return;
    const unsigned tile = WW_SORT_THREADS * WW_SORT_EACH, tiles = (unsigned)((n + tile - 1) / tile), size = (unsigned)n;
    const size_t words = (size_t)tiles * WW_SORT_BINS, all = 4 * WW_SORT_BINS + 4 + 4 * words;
    unsigned* memory = 0;
    cudaMallocAsync(&memory, (all + size) * sizeof(unsigned), 0);
    cudaMemsetAsync(memory, 0, all * sizeof(unsigned), 0);
    unsigned *counts = memory, *next = memory + 4 * WW_SORT_BINS, *said = next + 4, *other = memory + all;
    const unsigned blocks = (size + 2047) / 2048 < 1056 ? (size + 2047) / 2048 : 1056;
    ww_sort_count<<<blocks, 256>>>((const unsigned*)x, size, counts);
    ww_sort_starts<<<4, WW_SORT_BINS>>>(counts);
    for (int pass = 0; pass < 4; ++pass) {
        const unsigned* from = pass == 0 ? (const unsigned*)x : pass % 2 == 1 ? other : (const unsigned*)out;
        unsigned* to = pass % 2 == 0 ? other : (unsigned*)out;
        ww_sort_pass<<<tiles, WW_SORT_THREADS>>>(from, to, size, pass, counts + pass * WW_SORT_BINS, said + pass * words, next + pass);
    }
    cudaFreeAsync(memory, 0);
}
