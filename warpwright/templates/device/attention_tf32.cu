// softmax(q k^T * scale) v for every head on tensor cores, with float32's error: as attention.cu, a tile of queries goes along the keys and keeps the
// largest score and the sum of each row; each product is three of TF32 halves, as in product_tf32.cu.
//
// A warp has 16 queries, whose scores stay in its registers: the two numbers of a row that a lane has of eight scores are what it needs of them as a left
// operand, if the keys of eight are taken in the order 0 2 4 6 1 3 5 7, for the values' rows too. Columns of queries and keys are taken in that order as
// well, so that a lane reads two neighbours at once. Tensor cores cut off what they add up: they sum over a tile of keys, tiles are added in float32.
// Inputs have to be finite. Least work: 4 * heads * n * n * depth operations, three times as many on the tensor cores.

#define WW_ATF_DEPTH 64  // tune: 16 32 64; of a head, rounded up
#define WW_ATF_ROWS 128  // tune: 64 128

static const int WW_ATF_KEYS = 64, WW_ATF_THREADS = 2 * WW_ATF_ROWS, WW_ATF_K = WW_ATF_DEPTH + 8, WW_ATF_V = WW_ATF_DEPTH + 4;  // rows that meet no bank twice
static const int WW_ATF_STAGE = WW_ATF_KEYS * (WW_ATF_K + WW_ATF_V), WW_ATF_SHARED = 2 * WW_ATF_STAGE * 4;
static const int WW_ATF_STEPS = WW_ATF_DEPTH / 8, WW_ATF_GROUP = WW_ATF_STEPS < 4 ? WW_ATF_STEPS : 4;

struct ww_atf_sizes {
    int rows, keys, depth;  // of a head
    long long q_head, q_row, k_head, k_row, v_head, v_row, o_head, o_row;
    float scale;
};

static __device__ __forceinline__ void ww_atf_add(float* c, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void ww_atf_cut(float value, unsigned& high, unsigned& low) {
    high = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;  // to the nearest number of TF32
    low = __float_as_uint(value - __uint_as_float(high));
}

// A tile of keys or values goes to shared memory; rows beyond the last are zeros.
template <bool WHOLE, int WIDE>
static __device__ __forceinline__ void ww_atf_load(float* to, const float* __restrict__ from, int first, int count, int depth, long long by_row) {
#pragma unroll
    for (int at = threadIdx.x; at < WW_ATF_KEYS * (WW_ATF_DEPTH / 4); at += WW_ATF_THREADS) {
        const int row = at / (WW_ATF_DEPTH / 4), d = at % (WW_ATF_DEPTH / 4) * 4;
        const bool there = first + row < count;
        const float* place = from + (there ? first + row : 0) * by_row + d;
        float* target = to + row * WIDE + d;
        if (WHOLE) {
            const unsigned shared = (unsigned)__cvta_generic_to_shared(target);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(place), "r"(there ? 16 : 0) : "memory");
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e) target[e] = there && d + e < depth ? place[e] : 0.0f;
        }
    }
}

template <bool WHOLE>
static __global__ void __launch_bounds__(WW_ATF_THREADS)
ww_atf_kernel(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out, ww_atf_sizes s) {
    extern __shared__ __align__(16) float ww_atf_memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4, head = blockIdx.y;
    const int row = blockIdx.x * WW_ATF_ROWS + 16 * warp + group;  // and 8 rows further on
    const float *keys = k + head * s.k_head, *values = v + head * s.v_head;
    float query[WW_ATF_STEPS][4], sum[WW_ATF_STEPS][4];
#pragma unroll
    for (int step = 0; step < WW_ATF_STEPS; ++step) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int r = row + 8 * (e % 2), d = 8 * step + 2 * place + e / 2;
            query[step][e] = r < s.rows && d < s.depth ? q[head * s.q_head + r * s.q_row + d] * (s.scale * 1.44269504f) : 0.0f;  // powers of two are cheaper
            sum[step][e] = 0.0f;
        }
    }
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};
    ww_atf_load<WHOLE, WW_ATF_K>(ww_atf_memory, keys, 0, s.keys, s.depth, s.k_row);
    ww_atf_load<WHOLE, WW_ATF_V>(ww_atf_memory + WW_ATF_KEYS * WW_ATF_K, values, 0, s.keys, s.depth, s.v_row);
    asm volatile("cp.async.commit_group;" ::: "memory");
    int stage = 0;
    for (int start = 0; start < s.keys; start += WW_ATF_KEYS, stage ^= 1) {
        if (start + WW_ATF_KEYS < s.keys) {
            float* other = ww_atf_memory + (stage ^ 1) * WW_ATF_STAGE;
            ww_atf_load<WHOLE, WW_ATF_K>(other, keys, start + WW_ATF_KEYS, s.keys, s.depth, s.k_row);
            ww_atf_load<WHOLE, WW_ATF_V>(other + WW_ATF_KEYS * WW_ATF_K, values, start + WW_ATF_KEYS, s.keys, s.depth, s.v_row);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        const float *own_keys = ww_atf_memory + stage * WW_ATF_STAGE, *own_values = own_keys + WW_ATF_KEYS * WW_ATF_K;
        float score[8][4];
#pragma unroll
        for (int n = 0; n < 8; ++n) score[n][0] = score[n][1] = score[n][2] = score[n][3] = 0.0f;
#pragma unroll
        for (int step = 0; step < WW_ATF_STEPS; ++step) {
            unsigned a_high[4], a_low[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) ww_atf_cut(query[step][e], a_high[e], a_low[e]);
#pragma unroll
            for (int n = 0; n < 8; n += 4) {
                unsigned b_high[4][2], b_low[4][2];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float2 two = *(const float2*)(own_keys + (8 * (n + i) + group) * WW_ATF_K + 8 * step + 2 * place);
                    ww_atf_cut(two.x, b_high[i][0], b_low[i][0]);
                    ww_atf_cut(two.y, b_high[i][1], b_low[i][1]);
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) ww_atf_add(score[n + i], a_low, b_high[i]);
#pragma unroll
                for (int i = 0; i < 4; ++i) ww_atf_add(score[n + i], a_high, b_low[i]);
#pragma unroll
                for (int i = 0; i < 4; ++i) ww_atf_add(score[n + i], a_high, b_high[i]);
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {  // rows `row` and `row + 8`
            float largest = top[half];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (start + 8 * n + 2 * place + e >= s.keys) score[n][2 * half + e] = -INFINITY;
                    largest = fmaxf(largest, score[n][2 * half + e]);
                }
            }
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
            const float shrink = exp2f(top[half] - largest);
            top[half] = largest;
            total[half] *= shrink;
#pragma unroll
            for (int n = 0; n < 8; ++n) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    score[n][2 * half + e] = exp2f(score[n][2 * half + e] - largest);
                    total[half] += score[n][2 * half + e];
                }
            }
#pragma unroll
            for (int n = 0; n < WW_ATF_STEPS; ++n) {
                sum[n][2 * half] *= shrink;
                sum[n][2 * half + 1] *= shrink;
            }
        }
#pragma unroll
        for (int n = 0; n < WW_ATF_STEPS; n += WW_ATF_GROUP) {
            float part[WW_ATF_GROUP][4];
#pragma unroll
            for (int i = 0; i < WW_ATF_GROUP; ++i) part[i][0] = part[i][1] = part[i][2] = part[i][3] = 0.0f;
#pragma unroll
            for (int step = 0; step < 8; ++step) {
                unsigned a_high[4], a_low[4], b_high[WW_ATF_GROUP][2], b_low[WW_ATF_GROUP][2];
#pragma unroll
                for (int e = 0; e < 4; ++e) ww_atf_cut(score[step][2 * (e % 2) + e / 2], a_high[e], a_low[e]);
#pragma unroll
                for (int i = 0; i < WW_ATF_GROUP; ++i) {
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        ww_atf_cut(own_values[(8 * step + 2 * place + e) * WW_ATF_V + 8 * (n + i) + group], b_high[i][e], b_low[i][e]);
                    }
                }
#pragma unroll
                for (int i = 0; i < WW_ATF_GROUP; ++i) ww_atf_add(part[i], a_low, b_high[i]);
#pragma unroll
                for (int i = 0; i < WW_ATF_GROUP; ++i) ww_atf_add(part[i], a_high, b_low[i]);
#pragma unroll
                for (int i = 0; i < WW_ATF_GROUP; ++i) ww_atf_add(part[i], a_high, b_high[i]);
            }
#pragma unroll
            for (int i = 0; i < WW_ATF_GROUP; ++i) {
#pragma unroll
                for (int e = 0; e < 4; ++e) sum[n + i][e] += part[i][e];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float all = total[half];
        all += __shfl_xor_sync(0xffffffffu, all, 1);
        all += __shfl_xor_sync(0xffffffffu, all, 2);
        const int r = row + 8 * half;
        if (r >= s.rows) continue;
        float* to = out + head * s.o_head + r * s.o_row;
#pragma unroll
        for (int n = 0; n < WW_ATF_STEPS; ++n) {
            const int d = 8 * n + 2 * place;
            const float left = sum[n][2 * half] / all, right = sum[n][2 * half + 1] / all;
            if (WHOLE) {
                *(float2*)(to + d) = make_float2(left, right);
            } else {
                if (d < s.depth) to[d] = left;
                if (d + 1 < s.depth) to[d + 1] = right;
            }
        }
    }
}

static void ww_attention_tf32(const float* q, const float* k, const float* v, float* out, int heads, ww_atf_sizes s) {
    if (heads <= 0 || s.rows <= 0) return;
    const dim3 grid((s.rows + WW_ATF_ROWS - 1) / WW_ATF_ROWS, heads);
    const long long steps = s.k_head | s.k_row | s.v_head | s.v_row | s.o_head | s.o_row;
    if (s.depth == WW_ATF_DEPTH && steps % 4 == 0 && ((size_t)k | (size_t)v | (size_t)out) % 16 == 0) {
        cudaFuncSetAttribute(ww_atf_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, WW_ATF_SHARED);
        ww_atf_kernel<true><<<grid, WW_ATF_THREADS, WW_ATF_SHARED>>>(q, k, v, out, s);
    } else {
        cudaFuncSetAttribute(ww_atf_kernel<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, WW_ATF_SHARED);
        ww_atf_kernel<false><<<grid, WW_ATF_THREADS, WW_ATF_SHARED>>>(q, k, v, out, s);
    }
}
