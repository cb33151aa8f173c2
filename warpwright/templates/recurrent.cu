// LSTM, GRU and plain recurrent networks in one launch: the weights stay on chip for all steps.
//
//     s = W_hid h[t-1] + b_hid + (W_in x[t] + b_in)         LSTM: i, f, g, o = s; c = sigmoid(f) c + sigmoid(i) tanh(g); h[t] = sigmoid(o) tanh(c)
//
// A cell is a layer in one direction. A block has UNITS hidden units of one cell: the rows of all their gates, in registers (HELD steps of W_hid, HELD_IN of
// W_in) and in shared memory (the rest). LANES threads share a unit, each has every LANES-th four of its rows; their sums are joined by shuffles.
// Every block needs the whole h[t-1] of its cell, and the whole h[t] of the cell before where that is its input (CHAINED). Blocks exchange them through the
// outputs in global memory, without a barrier and without flags: all words of the outputs are NOTHING before the launch, and whoever needs one
// reads it until it is something else. So a step costs one way through the L2 cache, layers run one step behind each other, and there is nothing
// to reset after a run that was aborted. NOTHING is a NaN that no arithmetic makes; NaNs are written as another one.
// All blocks must be resident at once: the launch is cooperative, which is refused where they are not. A value that does not come is a trap, not a hang.
//
// 1  one block a unit of all gates, sums by shuffles of each value alone
// 2  values of TOGETHER batch elements joined at once: half of the values change places at each shuffle
//
// Least time: weights are read once; each step waits for one write and one read of the L2 cache. Reached on an H200 (benchmarks/results/recurrent_h200),
// a step over reading its weights from L2: 0.86 for an LSTM of 1,024 units and one sequence, 3.4 with 8 sequences, 11 with 32.

#ifndef KIND
#define KIND 0      // 0 LSTM, 1 GRU, 2 tanh, 3 ReLU
#define HIDDEN 256  // units of a cell
#define BATCH 10    // sequences
#define CHAINED 1   // do cells after the first read the outputs of the one before? else all have the products of their inputs (`pre`)
#define UNITS 12    // 1 to 1024 / LANES; hidden units of a block
#define LANES 16    // 8, 16 or 32; threads of a unit
#define HELD 4      // 0 to DEPTH: steps of four elements of W_hid's rows in registers, the rest in shared memory
#define HELD_IN 4   // 0 to DEPTH: of W_in's
#define TOGETHER 10  // 1 to 16: batch elements whose sums are joined together
#define AHEAD 4     // 1 to 16: reads of a thread in flight
#define SAMPLED 0   // 0 or 1; 1: a thread waits for one of its words before it reads the others, so that waiting leaves the L2 cache free
#endif
#ifndef PATIENCE
#define PATIENCE (1LL << 26)  // reads of a value before the trap: half a minute
#endif
#ifndef PAUSE
#define PAUSE  // between two reads: a GPU has nothing better to do, a CPU has other blocks to run
#endif

static const int GATES = KIND == 0 ? 4 : KIND == 1 ? 3 : 1;
static const int THREADS = UNITS * LANES, PLACES = (HIDDEN + UNITS - 1) / UNITS;
static const int DEPTH = (HIDDEN + 4 * LANES - 1) / (4 * LANES), PADDED = DEPTH * 4 * LANES;  // steps of a thread along a row
static const int ROWS = (BATCH + TOGETHER - 1) / TOGETHER * TOGETHER;
static const int OWN = (UNITS * BATCH + THREADS - 1) / THREADS;  // results of a thread
static const int KEPT = DEPTH - HELD, KEPT_IN = CHAINED ? DEPTH - HELD_IN : 0;
static const int WIDE = HIDDEN % 4 == 0 ? 4 : 1, WORDS = BATCH * HIDDEN / WIDE;  // of an exchange
static const unsigned NOTHING = 0xffffffffu, NOT_A_NUMBER = 0x7fc00000u;

struct Cell {
    const float* pre;                // products of the inputs [steps, batch, GATES * HIDDEN], b_in added; null: the inputs are the outputs of the cell before
    long long pre_step, pre_row;     // its strides
    const float *w_in, *b_in;        // [GATES * HIDDEN, HIDDEN], [GATES * HIDDEN], where pre is null
    const float *w_hid, *b_hid;      // biases may be null
    const float *h0, *c0;            // [batch, HIDDEN]
    const float* in;                 // the outputs of the cell before
    float *out, *hn, *cn;            // [steps, batch, HIDDEN] with the strides of the launch; [batch, HIDDEN]
    long long reverse;               // from the last step to the first
};

struct Cells {
    Cell at[16];
};

static __device__ __forceinline__ float4 fresh(const float* p) {  // past the L1 cache, which is not coherent
    float4 v;
    if (WIDE == 4) {
        asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    } else {
        asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v.x) : "l"(p));
        v.y = v.z = v.w = v.x;
    }
    return v;
}

static __device__ __forceinline__ bool missing(float4 v) {
    return __float_as_uint(v.x) == NOTHING || __float_as_uint(v.y) == NOTHING || __float_as_uint(v.z) == NOTHING || __float_as_uint(v.w) == NOTHING;
}

static __device__ __forceinline__ void publish(float* p, float value) {
    const float said = value == value ? value : __uint_as_float(NOT_A_NUMBER);
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(p), "f"(said) : "memory");
}

// Copy [BATCH, HIDDEN] of rows `row` apart into `to`; `wait`: for other blocks to write them.
static __device__ __forceinline__ void gather(float* to, const float* from, long long row, bool wait) {
    for (int first = threadIdx.x; first < WORDS; first += THREADS * AHEAD) {
        float4 v[AHEAD];
        bool again;
        long long reads = 0;
        if (SAMPLED && wait) {
            const float* own = from + first / (HIDDEN / WIDE) * row + first % (HIDDEN / WIDE) * WIDE;
            do {
                again = missing(fresh(own));
                if (again) {
                    PAUSE;
                    if (++reads > PATIENCE) __trap();
                }
            } while (again);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int word = first + i * THREADS, b = word / (HIDDEN / WIDE), k = word % (HIDDEN / WIDE) * WIDE;
            if (word < WORDS) v[i] = fresh(from + b * row + k);
        }
        do {
            again = false;
#pragma unroll
            for (int i = 0; i < AHEAD; ++i) {
                const int word = first + i * THREADS, b = word / (HIDDEN / WIDE), k = word % (HIDDEN / WIDE) * WIDE;
                if (wait && word < WORDS && missing(v[i])) {
                    v[i] = fresh(from + b * row + k);
                    again = true;
                }
            }
            if (again) {
                PAUSE;
                if (++reads > PATIENCE) __trap();
            }
        } while (again);
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int word = first + i * THREADS, b = word / (HIDDEN / WIDE), k = word % (HIDDEN / WIDE) * WIDE;
            if (word < WORDS) {
                if (WIDE == 4) *(float4*)(to + b * PADDED + k) = v[i];
                else to[b * PADDED + k] = v[i].x;
            }
        }
    }
}

static __device__ __forceinline__ float4 weights_at(const float* w, int gate, int unit, int k) {
    float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
    if (unit >= HIDDEN) return v;
    const float* row = w + ((long long)gate * HIDDEN + unit) * HIDDEN;
    if (k < HIDDEN) v.x = row[k];
    if (k + 1 < HIDDEN) v.y = row[k + 1];
    if (k + 2 < HIDDEN) v.z = row[k + 2];
    if (k + 3 < HIDDEN) v.w = row[k + 3];
    return v;
}

// Put the rows of this thread's unit on chip.
template <int HELD_OF>
static __device__ __forceinline__ void take(const float* w, int unit, int lane, float4* held, float4* kept) {
#pragma unroll
    for (int s = 0; s < DEPTH; ++s) {
#pragma unroll
        for (int g = 0; g < GATES; ++g) {
            const float4 v = weights_at(w, g, unit, (s * LANES + lane) * 4);
            if (s < HELD_OF) held[s * GATES + g] = v;
            else kept[((s - HELD_OF) * GATES + g) * THREADS + threadIdx.x] = v;
        }
    }
}

// sums [GATES, ROWS, UNITS] = the rows of the block's units times x [ROWS, PADDED].
template <int HELD_OF>
static __device__ __forceinline__ void multiply(const float* x, int lane, const float4* held, const float4* kept, float* sums) {
#pragma unroll 1
    for (int first = 0; first < ROWS; first += TOGETHER) {
        float value[GATES * TOGETHER];
#pragma unroll
        for (int i = 0; i < GATES * TOGETHER; ++i) value[i] = 0.f;
#pragma unroll
        for (int s = 0; s < DEPTH; ++s) {
            float4 w[GATES];
#pragma unroll
            for (int g = 0; g < GATES; ++g) w[g] = s < HELD_OF ? held[s * GATES + g] : kept[((s - HELD_OF) * GATES + g) * THREADS + threadIdx.x];
#pragma unroll
            for (int b = 0; b < TOGETHER; ++b) {
                const float4 v = *(const float4*)(x + (first + b) * PADDED + (s * LANES + lane) * 4);
#pragma unroll
                for (int g = 0; g < GATES; ++g) {
                    float sum = value[g * TOGETHER + b];
                    sum = fmaf(w[g].x, v.x, sum);
                    sum = fmaf(w[g].y, v.y, sum);
                    sum = fmaf(w[g].z, v.z, sum);
                    value[g * TOGETHER + b] = fmaf(w[g].w, v.w, sum);
                }
            }
        }
        int count = GATES * TOGETHER, from = 0;  // a lane ends with values from..from + count
#pragma unroll
        for (int apart = LANES / 2; apart > 0; apart /= 2) {
            if (count % 2 == 0) {
                count /= 2;
                const bool upper = (lane & apart) != 0;
#pragma unroll
                for (int i = 0; i < GATES * TOGETHER / 2; ++i) {
                    if (i < count) {
                        const float given = upper ? value[i] : value[count + i], mine = upper ? value[count + i] : value[i];
                        value[i] = mine + __shfl_xor_sync(0xffffffffu, given, apart);
                    }
                }
                from += upper ? count : 0;
            } else {
#pragma unroll
                for (int i = 0; i < GATES * TOGETHER; ++i) {
                    if (i < count) value[i] += __shfl_xor_sync(0xffffffffu, value[i], apart);
                }
            }
        }
        const int unit = threadIdx.x / LANES;
#pragma unroll
        for (int i = 0; i < GATES * TOGETHER; ++i) {
            if (i < count) sums[((from + i) / TOGETHER * ROWS + first + (from + i) % TOGETHER) * UNITS + unit] = value[i];
        }
    }
}

static __device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// The new h of one unit; `in` and `hid` are its gates' sums.
static __device__ __forceinline__ float advance(const float* in, const float* hid, float h, float& c) {
    if (KIND == 0) {
        const float i = sigmoid(in[0] + hid[0]), f = sigmoid(in[1] + hid[1]), g = tanhf(in[2] + hid[2]), o = sigmoid(in[3] + hid[3]);
        c = fmaf(f, c, i * g);
        return o * tanhf(c);
    }
    if (KIND == 1) {
        const float r = sigmoid(in[0] + hid[0]), z = sigmoid(in[1] + hid[1]), n = tanhf(fmaf(r, hid[2], in[2]));
        return fmaf(z, h - n, n);
    }
    const float s = in[0] + hid[0];
    return KIND == 2 ? tanhf(s) : s < 0.f ? 0.f : s;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) recurrent(Cells cells, int steps, long long step, long long row) {
    extern __shared__ float4 room[];
    float* state = (float*)room;
    float* input = state + ROWS * PADDED;
    float* sums_hid = input + (CHAINED ? ROWS * PADDED : 0);
    float* sums_in = sums_hid + GATES * ROWS * UNITS;
    float4* kept = room + (ROWS * PADDED * (1 + CHAINED) + 2 * GATES * ROWS * UNITS + 3) / 4;
    float4* kept_in = kept + KEPT * GATES * THREADS;
    const Cell cell = cells.at[blockIdx.x / PLACES];
    const int place = blockIdx.x % PLACES, lane = threadIdx.x % LANES;
    const bool fed = CHAINED && cell.pre == nullptr;

    float4 held[HELD * GATES + 1], held_in[HELD_IN * GATES + 1];
    take<HELD>(cell.w_hid, place * UNITS + threadIdx.x / LANES, lane, held, kept);
    if (fed) take<HELD_IN>(cell.w_in, place * UNITS + threadIdx.x / LANES, lane, held_in, kept_in);
    for (int i = threadIdx.x; i < ROWS * PADDED * (1 + CHAINED); i += THREADS) state[i] = 0.f;

    float h[OWN], c[OWN], bias_in[OWN][GATES], bias_hid[OWN][GATES];
#pragma unroll
    for (int own = 0; own < OWN; ++own) {
        const int i = threadIdx.x + own * THREADS, b = i / UNITS, unit = place * UNITS + i % UNITS;
        const bool mine = i < UNITS * BATCH && unit < HIDDEN;
        h[own] = mine ? cell.h0[b * HIDDEN + unit] : 0.f;
        c[own] = KIND == 0 && mine ? cell.c0[b * HIDDEN + unit] : 0.f;
#pragma unroll
        for (int g = 0; g < GATES; ++g) {
            bias_in[own][g] = fed && mine && cell.b_in ? cell.b_in[g * HIDDEN + unit] : 0.f;
            bias_hid[own][g] = mine && cell.b_hid ? cell.b_hid[g * HIDDEN + unit] : 0.f;
        }
    }
    __syncthreads();

    for (int t = 0; t < steps; ++t) {
        const long long now = cell.reverse ? steps - 1 - t : t, before = cell.reverse ? now + 1 : now - 1;
        float in[OWN][GATES];
#pragma unroll
        for (int own = 0; own < OWN; ++own) {
            const int i = threadIdx.x + own * THREADS, b = i / UNITS, unit = place * UNITS + i % UNITS;
            const bool mine = !fed && i < UNITS * BATCH && unit < HIDDEN;
#pragma unroll
            for (int g = 0; g < GATES; ++g) in[own][g] = mine ? cell.pre[now * cell.pre_step + b * cell.pre_row + g * HIDDEN + unit] : bias_in[own][g];
        }
        if (fed) {  // what the cell before found lies there for long, as a rule: this is done while h[t - 1] is on its way
            gather(input, cell.in + now * step, row, true);
            __syncthreads();
            multiply<HELD_IN>(input, lane, held_in, kept_in, sums_in);
        }
        if (t == 0) gather(state, cell.h0, HIDDEN, false);
        else gather(state, cell.out + before * step, row, true);
        __syncthreads();
        multiply<HELD>(state, lane, held, kept, sums_hid);
        __syncthreads();
#pragma unroll
        for (int own = 0; own < OWN; ++own) {
            const int i = threadIdx.x + own * THREADS, b = i / UNITS, u = i % UNITS, unit = place * UNITS + u;
            if (i < UNITS * BATCH && unit < HIDDEN) {
                float hid[GATES];
#pragma unroll
                for (int g = 0; g < GATES; ++g) {
                    hid[g] = sums_hid[(g * ROWS + b) * UNITS + u] + bias_hid[own][g];
                    if (fed) in[own][g] += sums_in[(g * ROWS + b) * UNITS + u];
                }
                h[own] = advance(in[own], hid, h[own], c[own]);
                publish(cell.out + now * step + b * row + unit, h[own]);
                if (t == steps - 1) {
                    cell.hn[b * HIDDEN + unit] = h[own];
                    if (KIND == 0) cell.cn[b * HIDDEN + unit] = c[own];
                }
            }
        }
        __syncthreads();  // whoever waits in the next step waits for other blocks alone
    }
}
