// A vector in ascending order: four passes over digits of 8 bits, each of which reads and writes the vector once ("Onesweep", arXiv 2206.01784).
//
// A number is sorted by the unsigned one that has the same order; NaN is the largest. out may be x itself. One kernel counts the digits of all four passes; in a pass a
// block takes the next tile, ranks its keys within each warp (lanes of one digit find each other by a word in shared memory), says how many of each digit it
// has, and looks back over the tiles before it for where its own begin. It writes by way of shared memory, so that keys of one digit go to memory side by
// side. Equal keys keep their order.
// Least traffic: 36 bytes an element (one read for the counts, then four times a read and a write).

#define WW_SORT_THREADS 512  // tune: 256 512
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

static __device__ __forceinline__ void ww_sort_tally(unsigned bits, unsigned* own) {
    const unsigned key = ww_sort_key(bits);
#pragma unroll
    for (int pass = 0; pass < 4; ++pass) atomicAdd(&own[pass * WW_SORT_BINS + (key >> (8 * pass) & 255u)], 1u);
}

static __global__ void ww_sort_count(const unsigned* __restrict__ x, unsigned n, unsigned* counts) {
    __shared__ unsigned own[4 * WW_SORT_BINS];
    for (int at = threadIdx.x; at < 4 * WW_SORT_BINS; at += blockDim.x) own[at] = 0;
    __syncthreads();
    const unsigned stride = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x, fours = (size_t)x % 16 == 0 ? n / 4 : 0;
    for (unsigned four = thread; four < fours; four += stride) {
        const uint4 bits = ((const uint4*)x)[four];
        ww_sort_tally(bits.x, own);
        ww_sort_tally(bits.y, own);
        ww_sort_tally(bits.z, own);
        ww_sort_tally(bits.w, own);
    }
    for (unsigned i = 4 * fours + thread; i < n; i += stride) ww_sort_tally(x[i], own);
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

// How many keys of a digit the tiles before this one have; four of them are read at once.
static __device__ __forceinline__ unsigned ww_sort_back(const unsigned* words, unsigned tile, int bin) {
    unsigned before = 0;
    for (int left = (int)tile; left > 0;) {
        unsigned word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] = left > i ? *(const volatile unsigned*)(words + (size_t)(left - 1 - i) * WW_SORT_BINS + bin) : WW_SORT_ALL;
        bool known = true;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            known = known && word[i] != 0;
            if (known) {
                before += word[i] & WW_SORT_COUNT;
                left = word[i] & WW_SORT_ALL ? 0 : left - 1;
                known = left > 0;
            }
        }
    }
    return before;
}

template <bool FIRST, bool LAST>
static __global__ void __launch_bounds__(WW_SORT_THREADS, (WW_SORT_EACH > 16 ? 768 : 1024) / WW_SORT_THREADS)
ww_sort_pass(const unsigned* from, unsigned* to, unsigned n, int shift, const unsigned* __restrict__ starts, unsigned* words, unsigned* next) {
    const int warps = WW_SORT_THREADS / 32;
    __shared__ unsigned keys[WW_SORT_THREADS * WW_SORT_EACH];  // before that: of each warp and digit, the lanes that have it
    __shared__ unsigned ranks[warps * WW_SORT_BINS];
    __shared__ unsigned target[WW_SORT_BINS], parts[WW_SORT_BINS / 32];
    __shared__ unsigned chosen;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) chosen = atomicAdd(next, 1u);
    for (int at = threadIdx.x; at < warps * WW_SORT_BINS; at += WW_SORT_THREADS) ranks[at] = keys[at] = 0;
    __syncthreads();
    const unsigned tile = chosen, first = tile * (WW_SORT_THREADS * WW_SORT_EACH), begin = first + warp * (32 * WW_SORT_EACH) + lane;
    const unsigned here = n - first < WW_SORT_THREADS * WW_SORT_EACH ? n - first : WW_SORT_THREADS * WW_SORT_EACH;
    unsigned *counts = ranks + warp * WW_SORT_BINS, *lanes = keys + warp * WW_SORT_BINS;
    unsigned key[WW_SORT_EACH], rank[WW_SORT_EACH];
    if (here == WW_SORT_THREADS * WW_SORT_EACH) {
#pragma unroll
        for (int e = 0; e < WW_SORT_EACH; ++e) key[e] = from[begin + e * 32];
    } else {
#pragma unroll
        for (int e = 0; e < WW_SORT_EACH; ++e) key[e] = begin + e * 32 < n ? from[begin + e * 32] : 0;
    }
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) {
        if (FIRST) key[e] = ww_sort_key(key[e]);
        if (here < WW_SORT_THREADS * WW_SORT_EACH && begin + e * 32 >= n) key[e] = 0xffffffffu;  // beyond the end: behind everything, as the last of its digit
    }
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) {
        const unsigned digit = key[e] >> shift & 255u;
        atomicOr(&lanes[digit], 1u << lane);
        __syncwarp();
        const unsigned alike = lanes[digit];  // lanes of the same digit, the last of which counts them
        const int leader = 31 - __clz((int)alike);
        const unsigned upto = __popc(alike & (0xffffffffu >> (31 - lane)));
        unsigned seen = 0;
        if (lane == leader) {
            seen = counts[digit];
            counts[digit] = seen + upto;
        }
        rank[e] = __shfl_sync(0xffffffffu, seen, leader) + upto - 1;
        if (lane == leader) lanes[digit] = 0;
        __syncwarp();
    }
    __syncthreads();
    unsigned own = 0, before[warps];  // of the warps before each
    const int bin = threadIdx.x;
    if (bin < WW_SORT_BINS) {
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            before[w] = own;
            own += ranks[w * WW_SORT_BINS + bin];
        }
        atomicExch(&words[(size_t)tile * WW_SORT_BINS + bin], own | (tile == 0 ? WW_SORT_ALL : WW_SORT_OWN));
    }
    const unsigned place = ww_sort_before(own, parts);
    if (bin < WW_SORT_BINS) {
#pragma unroll
        for (int w = 0; w < warps; ++w) ranks[w * WW_SORT_BINS + bin] = place + before[w];
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) keys[counts[key[e] >> shift & 255u] + rank[e]] = key[e];
    if (bin < WW_SORT_BINS) {
        const unsigned earlier = ww_sort_back(words, tile, bin);
        if (tile > 0) atomicExch(&words[(size_t)tile * WW_SORT_BINS + bin], (earlier + own) | WW_SORT_ALL);
        target[bin] = starts[bin] + earlier - place;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < WW_SORT_EACH; ++e) {
        const unsigned at = e * WW_SORT_THREADS + threadIdx.x;
        if (at < here) {
            const unsigned sorted = keys[at];
            to[target[sorted >> shift & 255u] + at] = LAST ? ww_sort_bits(sorted) : sorted;
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
    unsigned* to = (unsigned*)out;
    ww_sort_pass<true, false><<<tiles, WW_SORT_THREADS>>>((const unsigned*)x, other, size, 0, counts, said, next);
    ww_sort_pass<false, false><<<tiles, WW_SORT_THREADS>>>(other, to, size, 8, counts + WW_SORT_BINS, said + words, next + 1);
    ww_sort_pass<false, false><<<tiles, WW_SORT_THREADS>>>(to, other, size, 16, counts + 2 * WW_SORT_BINS, said + 2 * words, next + 2);
    ww_sort_pass<false, true><<<tiles, WW_SORT_THREADS>>>(other, to, size, 24, counts + 3 * WW_SORT_BINS, said + 3 * words, next + 3);
    cudaFreeAsync(memory, 0);
}
