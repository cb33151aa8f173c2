// The k largest elements of a vector, in descending order, k <= 1024.
//
// The k-th largest of a sample is a lower bound of the k-th largest of all: one block finds it by counting digits, one pass over the vector keeps what is
// above it (and counts what is equal to it, so that ties are no burden), and one block finds the k largest of what was kept. Where so much is above the
// bound that it does not fit (which takes an order of elements that the sample does not show), that block goes through the vector itself: slow, and right.
// NaN is the largest. Least traffic: 4 bytes an element.

#define WW_TOP_SAMPLE 32768  // tune: 16384 32768 65536; elements, evenly spread
#define WW_TOP_ROOM 524288   // tune: 262144 524288 1048576; elements that are kept at most
#define WW_TOP_BLOCKS 1056   // tune: 528 1056 2112

static const int WW_TOP_MOST = 1024, WW_TOP_AHEAD = 8;  // elements of the result; turns whose keys one block reads before it counts them

static __device__ __forceinline__ unsigned ww_top_key(float value) {
    const unsigned bits = __float_as_uint(value);
    if (value != value) return 0xffffffffu;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float ww_top_value(unsigned key) {
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

struct ww_top_state {
    unsigned bound;  // the k-th largest key of the sample
    unsigned kept;   // keys above it; those that found room are in the list
    unsigned equal;  // keys equal to it
};

// The k-th largest of `count` keys, the one at i being key_at(i): four rounds over digits of 8 bits, by one block of 1024 threads. `above`: how many are larger.
template <bool DIRECT>
static __device__ unsigned ww_top_find(const float* x, const unsigned* list, long long count, long long step, unsigned k, unsigned& above) {
    __shared__ unsigned bins[256];
    __shared__ unsigned digit_found, left;
    unsigned prefix = 0, wanted = k;
    for (int round = 3; round >= 0; --round) {
        const int shift = 8 * round;
        if (threadIdx.x < 256) bins[threadIdx.x] = 0;
        __syncthreads();
        const long long turns = (count + blockDim.x - 1) / blockDim.x;
        for (long long turn = 0; turn < turns; turn += WW_TOP_AHEAD) {
            unsigned keys[WW_TOP_AHEAD];
#pragma unroll
            for (int ahead = 0; ahead < WW_TOP_AHEAD; ++ahead) {
                const long long i = (turn + ahead) * blockDim.x + threadIdx.x;
                keys[ahead] = i >= count ? 0 : DIRECT ? ww_top_key(x[i * step]) : list[i];
            }
#pragma unroll
            for (int ahead = 0; ahead < WW_TOP_AHEAD; ++ahead) {
                const unsigned key = keys[ahead], digit = key >> shift & 255u;
                const bool there = (turn + ahead) * blockDim.x + threadIdx.x < count;
                const bool fits = there && (round == 3 || key >> (shift + 8) == prefix >> (shift + 8));
                const unsigned all = __ballot_sync(0xffffffffu, fits);
                if (all) {  // keys in the tail share their digits: the lanes that agree with the first of them add once
                    const int leader = __ffs((int)all) - 1;
                    const unsigned usual = __shfl_sync(0xffffffffu, digit, leader);
                    const unsigned agreeing = __ballot_sync(0xffffffffu, fits && digit == usual);
                    if ((int)(threadIdx.x % 32) == leader) atomicAdd(&bins[usual], (unsigned)__popc(agreeing));
                    if (fits && digit != usual) atomicAdd(&bins[digit], 1u);
                }
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned rest = wanted;
            int digit = 255;
            while (digit > 0 && bins[digit] < rest) rest -= bins[digit--];
            digit_found = (unsigned)digit;
            left = rest;
        }
        __syncthreads();
        prefix |= digit_found << shift;
        wanted = left;
        __syncthreads();
    }
    above = k - wanted;
    return prefix;
}

static __global__ void ww_top_bound(const float* __restrict__ x, long long n, long long count, unsigned k, ww_top_state* state) {
    unsigned above = 0;
    const unsigned bound = ww_top_find<true>(x, 0, count, n / count, k, above);
    if (threadIdx.x == 0) {
        state->bound = bound;
        state->kept = 0;
        state->equal = 0;
    }
}

static __global__ void ww_top_keep(const float* __restrict__ x, long long n, ww_top_state* state, unsigned* list) {
    const unsigned bound = state->bound;
    const long long stride = (long long)gridDim.x * blockDim.x, thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long fours = (size_t)x % 16 == 0 ? n / 4 : 0;
    unsigned equal = 0;
#pragma unroll 4
    for (long long four = thread; four < fours; four += stride) {
        const float4 own = ((const float4*)x)[four];
        const unsigned keys[4] = {ww_top_key(own.x), ww_top_key(own.y), ww_top_key(own.z), ww_top_key(own.w)};
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (keys[e] > bound) {
                const unsigned at = atomicAdd(&state->kept, 1u);
                if (at < WW_TOP_ROOM) list[at] = keys[e];
            }
            equal += keys[e] == bound;
        }
    }
    for (long long i = 4 * fours + thread; i < n; i += stride) {
        const unsigned key = ww_top_key(x[i]);
        if (key > bound) {
            const unsigned at = atomicAdd(&state->kept, 1u);
            if (at < WW_TOP_ROOM) list[at] = key;
        }
        equal += key == bound;
    }
#pragma unroll
    for (int far = 16; far > 0; far /= 2) equal += __shfl_xor_sync(0xffffffffu, equal, far);
    if (threadIdx.x % 32 == 0 && equal) atomicAdd(&state->equal, equal);
}

static __global__ void ww_top_pick(const float* __restrict__ x, long long n, unsigned k, const ww_top_state* state, const unsigned* list, float* out) {
    __shared__ unsigned best[WW_TOP_MOST];
    __shared__ unsigned taken;
    const unsigned kept = state->kept;
    const bool direct = kept > WW_TOP_ROOM;
    unsigned threshold = state->bound, above = kept;
    if (direct) {
        threshold = ww_top_find<true>(x, 0, n, 1, k, above);
    } else if (kept >= k) {
        threshold = ww_top_find<false>(x, list, kept, 1, k, above);
    }
    for (int at = threadIdx.x; at < WW_TOP_MOST; at += blockDim.x) best[at] = at < (int)k ? threshold : 0;
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
    const long long count = direct ? n : kept;
    for (long long i = threadIdx.x; i < count; i += blockDim.x) {
        const unsigned key = direct ? ww_top_key(x[i]) : list[i];
        if (key > threshold) best[atomicAdd(&taken, 1u)] = key;
    }
    __syncthreads();
    for (int size = 2; size <= WW_TOP_MOST; size *= 2) {  // a bitonic network, descending
        for (int far = size / 2; far > 0; far /= 2) {
            for (int at = threadIdx.x; at < WW_TOP_MOST; at += blockDim.x) {
                const int other = at ^ far;
                if (other > at) {
                    const unsigned one = best[at], two = best[other];
                    if ((at & size) == 0 ? one < two : one > two) {
                        best[at] = two;
                        best[other] = one;
                    }
                }
            }
            __syncthreads();
        }
    }
    for (int at = threadIdx.x; at < (int)k; at += blockDim.x) out[at] = ww_top_value(best[at]);
}

static void ww_top(const float* x, float* out, long long n, unsigned k) {  // 1 <= k <= 1024, k <= n
    char* memory = 0;
    cudaMallocAsync(&memory, 256 + WW_TOP_ROOM * sizeof(unsigned), 0);
    ww_top_state* state = (ww_top_state*)memory;
    unsigned* list = (unsigned*)(memory + 256);
    const long long count = n < WW_TOP_SAMPLE ? n : WW_TOP_SAMPLE;
    ww_top_bound<<<1, 1024>>>(x, n, count, k, state);
    ww_top_keep<<<WW_TOP_BLOCKS, 256>>>(x, n, state, list);
    ww_top_pick<<<1, 1024>>>(x, n, k, state, list, out);
    cudaFreeAsync(memory, 0);
}
