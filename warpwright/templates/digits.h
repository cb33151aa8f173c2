// Sorting by digits of eight bits, the lowest first: what the kernels of domains/graph/cuda/digits.py call, after fused_math.h.
//
//   sorted_short    a row of up to DIGITS * EACH elements by a block, which keeps it on chip
//   sorted_long     longer rows in one launch: a block draws a tile of a pass, and looks back over the tiles before it ("Onesweep", arXiv 2206.01784)
//
// Digits are those of the unsigned number of the same order. A float of a long row goes from place to place as that number, and zeros and NaN, of which
// there are several with one number, are read again at their places in the end: 2^24 took 821 us so on an H200, 964 where each pass works the numbers out
// anew. Integers, of which that takes one instruction, and rows on chip, where registers are short (308 us for 361 in 4,096 rows of 4,096), go as they
// are. Digits that all elements of a row share are skipped. Blocks have a thread for each value of a digit. Equal elements keep their order.
// Traffic at least, of long rows of floats with places: 4 bytes an element for the counts, then 12, 16, 16 and 20.
static const unsigned DIGITS = 256, DIGIT_WARPS = DIGITS / 32, COUNTED_TILES = 4;
static const unsigned OWN_COUNT = 1u << 30, ALL_COUNT = 2u << 30, COUNT_ONLY = (1u << 30) - 1;  // what a word says: a tile's own count, or that of all up to it

// INFINITE: the bits of a float's infinity, 0 of integers. NaN is the largest, and both zeros are equal.
template <typename T, T INFINITE, bool SIGNED, bool FALLING>
__device__ __forceinline__ T in_order(T bits) {
    const T sign = (T)((T)1 << (8 * sizeof(T) - 1));
    T key = SIGNED ? (T)(bits ^ sign) : bits;
    if (INFINITE != 0) {
        const T size = (T)(bits & (T)~sign);
        key = size > INFINITE ? (T)~(T)0 : size == 0 ? sign : bits & sign ? (T)~bits : (T)(bits | sign);
    }
    return FALLING ? (T)~key : key;
}
// The bits of the element of a number; those of another one for zero and NaN.
template <typename T, T INFINITE, bool SIGNED, bool FALLING>
__device__ __forceinline__ T out_of_order(T key) {
    const T sign = (T)((T)1 << (8 * sizeof(T) - 1));
    const T raised = FALLING ? (T)~key : key;
    if (INFINITE != 0) return raised & sign ? (T)(raised ^ sign) : (T)~raised;
    return SIGNED ? (T)(raised ^ sign) : raised;
}
// The element of a number that has come to its place; `x` has it at `place`.
template <typename T, T INFINITE, bool SIGNED, bool FALLING>
__device__ __forceinline__ T element_of(T key, const T* x, unsigned place) {
    const T zero = in_order<T, INFINITE, SIGNED, FALLING>((T)0), nan = FALLING ? (T)0 : (T)~(T)0;
    if (INFINITE != 0 && (key == zero || key == nan)) return x[place];
    return out_of_order<T, INFINITE, SIGNED, FALLING>(key);
}
// What is moved of an element, and its digit in a pass; `NUMBERS`: are numbers moved?
template <typename T, T INFINITE, bool SIGNED, bool FALLING, bool NUMBERS>
__device__ __forceinline__ T moved_of(T bits) {
    return NUMBERS ? in_order<T, INFINITE, SIGNED, FALLING>(bits) : bits;
}
template <typename T, T INFINITE, bool SIGNED, bool FALLING, bool NUMBERS>
__device__ __forceinline__ unsigned digit_of(T moved, int pass) {
    return (unsigned)((NUMBERS ? moved : in_order<T, INFINITE, SIGNED, FALLING>(moved)) >> (8 * pass)) & 255u;
}

// Ranks a thread's elements, of which it is given the digits, among those of its warp with the same digit, and counts these in the warp's part of
// `counts`: a digit becomes itself and 256 times its rank, which saves a register an element. `lanes` is zero, and stays so.
template <int EACH>
__device__ __forceinline__ void ranked_in_warp(unsigned (&ranked)[EACH], unsigned* lanes, unsigned* counts) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const unsigned digit = ranked[e];
        atomicOr(&lanes[digit], 1u << lane);
        __syncwarp();
        const unsigned alike = lanes[digit];  // the last of these counts them
        const int leader = 31 - __clz((int)alike);
        const unsigned upto = __popc(alike & (0xffffffffu >> (31 - lane)));
        unsigned seen = 0;
        if (lane == leader) {
            seen = counts[digit];
            counts[digit] = seen + upto;
        }
        ranked[e] = digit | (__shfl_sync(0xffffffffu, seen, leader) + upto - 1) << 8;
        if (lane == leader) lanes[digit] = 0;
        __syncwarp();
    }
}

// The sum of the values of all threads before this one; `parts` has a place for each warp.
__device__ __forceinline__ unsigned sum_before(unsigned value, unsigned* parts) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned sum = value;
#pragma unroll
    for (int far = 1; far < 32; far *= 2) {
        const unsigned left = __shfl_up_sync(0xffffffffu, sum, far);
        if (lane >= far) sum += left;
    }
    if (lane == 31) parts[warp] = sum;
    __syncthreads();
    unsigned before = sum - value;
    for (int w = 0; w < (int)DIGIT_WARPS; ++w) {
        if (w < warp) before += parts[w];
    }
    __syncthreads();
    return before;
}

// How many elements of this thread's digit the tile has, by the warps' counts.
__device__ __forceinline__ unsigned sum_of_warps(const unsigned* ranks) {
    unsigned own = 0;
#pragma unroll
    for (int w = 0; w < (int)DIGIT_WARPS; ++w) own += ranks[w * DIGITS + threadIdx.x];
    return own;
}
// Makes of the warps' counts where in the tile each warp's elements of a digit begin.
__device__ __forceinline__ void begun_at(unsigned* ranks, unsigned first) {
#pragma unroll
    for (int w = 0; w < (int)DIGIT_WARPS; ++w) {
        const unsigned own = ranks[w * DIGITS + threadIdx.x];
        ranks[w * DIGITS + threadIdx.x] = first;
        first += own;
    }
}

// How many elements of this thread's digit the tiles before this one have; four of their words are read at once.
__device__ __forceinline__ unsigned sum_of_tiles(const unsigned* words, unsigned tile) {
    unsigned before = 0;
    for (int left = (int)tile; left > 0;) {
        unsigned word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] = left > i ? *(const volatile unsigned*)(words + (long long)(left - 1 - i) * DIGITS + threadIdx.x) : ALL_COUNT;
        bool known = true;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            known = known && word[i] != 0;
            if (known) {
                before += word[i] & COUNT_ONLY;
                left = word[i] & ALL_COUNT ? 0 : left - 1;
                known = left > 0;
            }
        }
    }
    return before;
}

// `room`: DIGITS * EACH elements and places, and at least 2,048 words; `ranks`: 2,048 words; `shown`: DIGITS + 16.
template <typename T, T INFINITE, bool SIGNED, bool FALLING, bool PLACES, int EACH>
__device__ __forceinline__ void sorted_short(
    const T* __restrict__ x, T* __restrict__ values, long long* __restrict__ places, unsigned length, unsigned long long* room, unsigned* ranks, unsigned* shown
) {
    const unsigned tile = DIGITS * EACH, lane = threadIdx.x % 32, warp = threadIdx.x / 32, begin = warp * (32 * EACH) + lane;
    T* held = (T*)room;
    unsigned *moved = (unsigned*)(held + tile), *lanes = (unsigned*)room;
    T bits[EACH];
    unsigned place[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        place[e] = begin + e * 32;
        bits[e] = place[e] < length ? x[place[e]] : (T)0;
    }
    for (int pass = 0; pass < (int)sizeof(T); ++pass) {
        unsigned ranked[EACH];
        for (int at = threadIdx.x; at < (int)(DIGIT_WARPS * DIGITS); at += DIGITS) lanes[at] = ranks[at] = 0;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e) {  // what lies beyond the row stays behind everything: it is the last of the largest digit
            ranked[e] = begin + e * 32 < length ? digit_of<T, INFINITE, SIGNED, FALLING, false>(bits[e], pass) : 255u;
        }
        ranked_in_warp<EACH>(ranked, lanes + warp * DIGITS, ranks + warp * DIGITS);
        __syncthreads();
        const unsigned own = sum_of_warps(ranks);
        if (__syncthreads_or(own - (threadIdx.x == DIGITS - 1 ? tile - length : 0) == length)) continue;
        begun_at(ranks, sum_before(own, shown));
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const unsigned to = ranks[warp * DIGITS + ranked[e] % DIGITS] + ranked[e] / DIGITS;
            held[to] = bits[e];
            if (PLACES) moved[to] = place[e];
        }
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            bits[e] = held[begin + e * 32];
            if (PLACES) place[e] = moved[begin + e * 32];
        }
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        if (begin + e * 32 < length) {
            if (values) values[begin + e * 32] = bits[e];
            if (PLACES) places[begin + e * 32] = place[e];
        }
    }
}

// `kept`: two copies of all rows, elements and places. `flags`: zeros; a number that is drawn, of each row how many blocks have ended each step, the counts
// of all its digits, and the words of its tiles. `chunk`: rows that go through all steps before the next ones begin, so that what a block waits for was
// most often drawn long before; a block waits for those drawn before it only.
template <typename T, T INFINITE, bool SIGNED, bool FALLING, bool PLACES, int EACH>
__device__ __forceinline__ void sorted_long(
    const T* __restrict__ x, T* __restrict__ values, long long* __restrict__ places, unsigned rows, unsigned length, unsigned chunk, void* kept, unsigned* flags,
    unsigned long long* room, unsigned* ranks, unsigned* shown
) {
    const bool NUMBERS = PLACES && INFINITE != 0;
    const unsigned tile_size = DIGITS * EACH, passes = sizeof(T), tiles = (length + tile_size - 1) / tile_size;
    const unsigned counting = (tiles + COUNTED_TILES - 1) / COUNTED_TILES, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned *target = shown, *parts = shown + DIGITS, *alike = parts + DIGIT_WARPS, *drawn = alike + 1;
    unsigned *done = flags + 1, *all_counts = done + (long long)rows * (passes + 1), *all_words = all_counts + (long long)rows * passes * DIGITS;
    if (threadIdx.x == 0) {
        *drawn = atomicAdd(flags, 1u);
        *alike = 0;
    }
    __syncthreads();
    const unsigned of_chunk = chunk * (counting + passes * tiles), first_step = chunk * counting;
    unsigned left = *drawn % of_chunk, step = 0, per_row = counting;
    if (left >= first_step) {
        step = 1 + (left - first_step) / (chunk * tiles);
        left = (left - first_step) % (chunk * tiles);
        per_row = tiles;
    }
    const unsigned row = *drawn / of_chunk * chunk + left / per_row, tile = left % per_row;
    if (row >= rows) return;
    done += (long long)row * (passes + 1);
    unsigned* counts = all_counts + (long long)row * passes * DIGITS;
    const T* own_row = x + (long long)row * length;
    if (step == 0) {
        for (int at = threadIdx.x; at < (int)(passes * DIGITS); at += DIGITS) ranks[at] = 0;
        __syncthreads();
        for (unsigned part = 0; part < COUNTED_TILES; ++part) {
            const unsigned begin = (tile * COUNTED_TILES + part) * tile_size + threadIdx.x;
            T bits[EACH];
#pragma unroll
            for (int e = 0; e < EACH; ++e) bits[e] = begin + e * DIGITS < length ? own_row[begin + e * DIGITS] : (T)0;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (begin + e * DIGITS < length) {
                    const T key = in_order<T, INFINITE, SIGNED, FALLING>(bits[e]);
#pragma unroll
                    for (int pass = 0; pass < (int)passes; ++pass) atomicAdd(&ranks[pass * DIGITS + ((unsigned)(key >> (8 * pass)) & 255u)], 1u);
                }
            }
        }
        __syncthreads();
        for (int at = threadIdx.x; at < (int)(passes * DIGITS); at += DIGITS) {
            if (ranks[at]) atomicAdd(&counts[at], ranks[at]);
        }
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(done, 1u);
        return;
    }
    const unsigned pass = step - 1;
    if (threadIdx.x == 0) {
        while (atomicAdd(&done[pass], 0u) < (pass ? tiles : counting)) {}
        __threadfence();
    }
    __syncthreads();
    unsigned of_digit = 0;
    for (unsigned p = 0; p < passes; ++p) {
        const unsigned count = __ldcg(counts + p * DIGITS + threadIdx.x);
        if (p == pass) of_digit = count;
        if (count == length) atomicOr(alike, 1u << p);
    }
    __syncthreads();
    const unsigned moving = (1u << passes) - 1 - *alike, all = moving ? moving : 1u << (passes - 1);  // the last one copies, where no digit moves anything
    if (!(all >> pass & 1u)) {
        if (threadIdx.x == 0) atomicAdd(&done[step], 1u);
        return;
    }
    const unsigned earlier = __popc(all & ((1u << pass) - 1u));
    const bool last = all >> pass == 1u;
    const long long every = (long long)rows * length, own_begin = (long long)row * length;
    T *copies = (T*)kept, *to = copies + (earlier % 2) * every + own_begin;
    const T* from = earlier ? copies + ((earlier + 1) % 2) * every + own_begin : own_row;
    unsigned *copied = (unsigned*)(copies + (passes > 2 ? 2 : 1) * every + (every * (passes > 2 ? 2 : 1)) % 2), *to_places = copied + (earlier % 2) * every + own_begin;
    const unsigned* from_places = copied + ((earlier + 1) % 2) * every + own_begin;
    const unsigned first = tile * tile_size, begin = first + warp * (32 * EACH) + lane, here = length - first < tile_size ? length - first : tile_size;
    T* held = (T*)room;
    unsigned *moved = (unsigned*)(held + tile_size), *lanes = (unsigned*)room;
    for (int at = threadIdx.x; at < (int)(DIGIT_WARPS * DIGITS); at += DIGITS) lanes[at] = ranks[at] = 0;
    const unsigned start = sum_before(of_digit, parts);  // waits for all threads, too
    T bits[EACH];
    unsigned place[EACH], ranked[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const unsigned at = begin + e * 32;
        bits[e] = at < length ? (earlier ? __ldcg(from + at) : moved_of<T, INFINITE, SIGNED, FALLING, NUMBERS>(from[at])) : (T)0;
        place[e] = at;
        if (PLACES && earlier && at < length) place[e] = __ldcg(from_places + at);
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {  // what lies beyond the row comes behind everything: it is the last of the largest digit
        ranked[e] = begin + e * 32 < length ? digit_of<T, INFINITE, SIGNED, FALLING, NUMBERS>(bits[e], pass) : 255u;
    }
    ranked_in_warp<EACH>(ranked, lanes + warp * DIGITS, ranks + warp * DIGITS);
    __syncthreads();
    unsigned* words = all_words + ((long long)row * passes + pass) * tiles * DIGITS;
    unsigned* word = words + (long long)tile * DIGITS + threadIdx.x;
    const unsigned own = sum_of_warps(ranks);
    atomicExch(word, own | (tile == 0 ? ALL_COUNT : OWN_COUNT));
    const unsigned in_tile = sum_before(own, parts);
    begun_at(ranks, in_tile);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const unsigned at = ranks[warp * DIGITS + ranked[e] % DIGITS] + ranked[e] / DIGITS;
        held[at] = bits[e];
        if (PLACES) moved[at] = place[e];
    }
    const unsigned before = sum_of_tiles(words, tile);
    if (tile > 0) atomicExch(word, (before + own) | ALL_COUNT);
    target[threadIdx.x] = start + before - in_tile;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const unsigned at = e * DIGITS + threadIdx.x;
        if (at < here) {
            const T sorted = held[at];
            const unsigned goes = target[digit_of<T, INFINITE, SIGNED, FALLING, NUMBERS>(sorted, pass)] + at;
            if (!last) {
                to[goes] = sorted;
                if (PLACES) to_places[goes] = moved[at];
            } else {
                if (values) values[own_begin + goes] = NUMBERS ? element_of<T, INFINITE, SIGNED, FALLING>(sorted, own_row, moved[at]) : sorted;
                if (PLACES) places[own_begin + goes] = moved[at];
            }
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&done[step], 1u);
}
