// softmax(q k^T * scale) v for every head, without the scores in memory: a tile of queries goes along the keys and keeps the largest score and the sum of
// each row ("flash attention", arXiv 2205.14135), all in float32.
//
// A block has WW_ATT_ROWS queries; a thread has 4 of them and every 16th key of a tile of 64, then 4 of them and WW_ATT_DEPTH / 16 columns of the output. All
// three matrices are read along rows: element (head, row, d) lies at head * by_head + row * by_row + d.
// Least work: 4 * heads * n * n * depth operations.

#define WW_ATT_DEPTH 64  // tune: 16 32 64 128; of a head, rounded up
#define WW_ATT_ROWS 64   // tune: 64 128

static const int WW_ATT_KEYS = 64, WW_ATT_THREADS = WW_ATT_ROWS / 4 * 16, WW_ATT_WIDE = WW_ATT_DEPTH + 4, WW_ATT_LONG = WW_ATT_KEYS + 4;
static const int WW_ATT_OWN = WW_ATT_DEPTH / 16;  // columns of the output that a thread has
static const int WW_ATT_SECOND = WW_ATT_KEYS * WW_ATT_WIDE > WW_ATT_ROWS * WW_ATT_LONG ? WW_ATT_KEYS * WW_ATT_WIDE : WW_ATT_ROWS * WW_ATT_LONG;
static const int WW_ATT_SHARED = (WW_ATT_ROWS * WW_ATT_WIDE + WW_ATT_SECOND + WW_ATT_KEYS * WW_ATT_WIDE) * 4;  // bytes

struct ww_att_sizes {
    int rows, keys, depth;  // of a head
    long long q_head, q_row, k_head, k_row, v_head, v_row, o_head, o_row;
    float scale;
};

static __device__ __forceinline__ void ww_att_load(float* to, const float* __restrict__ from, int first, int count, int rows, int depth, long long by_row, float scale) {
    for (int at = threadIdx.x; at < rows * (WW_ATT_DEPTH / 4); at += WW_ATT_THREADS) {
        const int row = at / (WW_ATT_DEPTH / 4), d = at % (WW_ATT_DEPTH / 4) * 4;
        float4 own = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (first + row < count) {
            const float* place = from + (first + row) * by_row + d;
            if (d + 4 <= depth && ((size_t)place) % 16 == 0) {
                own = *(const float4*)place;
            } else {
                if (d < depth) own.x = place[0];
                if (d + 1 < depth) own.y = place[1];
                if (d + 2 < depth) own.z = place[2];
                if (d + 3 < depth) own.w = place[3];
            }
        }
        float* target = to + row * WW_ATT_WIDE + d;
        target[0] = own.x * scale;
        target[1] = own.y * scale;
        target[2] = own.z * scale;
        target[3] = own.w * scale;
    }
}

static __global__ void __launch_bounds__(WW_ATT_THREADS)
ww_att_kernel(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out, ww_att_sizes s) {
    extern __shared__ float ww_att_memory[];
    float* queries = ww_att_memory;
    float* second = queries + WW_ATT_ROWS * WW_ATT_WIDE;  // keys, then the tile's weights
    float* values = second + WW_ATT_SECOND;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, head = blockIdx.y, first = blockIdx.x * WW_ATT_ROWS;
    ww_att_load(queries, q + head * s.q_head, first, s.rows, WW_ATT_ROWS, s.depth, s.q_row, s.scale * 1.44269504f);  // powers of two are cheaper
    float top[4], total[4], sum[4][WW_ATT_OWN];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        top[i] = -INFINITY;
        total[i] = 0.0f;
#pragma unroll
        for (int c = 0; c < WW_ATT_OWN; ++c) sum[i][c] = 0.0f;
    }
    for (int start = 0; start < s.keys; start += WW_ATT_KEYS) {
        __syncthreads();
        ww_att_load(second, k + head * s.k_head, start, s.keys, WW_ATT_KEYS, s.depth, s.k_row, 1.0f);
        ww_att_load(values, v + head * s.v_head, start, s.keys, WW_ATT_KEYS, s.depth, s.v_row, 1.0f);
        __syncthreads();
        float score[4][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) score[i][j] = 0.0f;
        }
#pragma unroll 4
        for (int d = 0; d < WW_ATT_DEPTH; d += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) a[i] = *(const float4*)(queries + (ty * 4 + i) * WW_ATT_WIDE + d);
#pragma unroll
            for (int j = 0; j < 4; ++j) b[j] = *(const float4*)(second + (tx + 16 * j) * WW_ATT_WIDE + d);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    score[i][j] += a[i].x * b[j].x;
                    score[i][j] += a[i].y * b[j].y;
                    score[i][j] += a[i].z * b[j].z;
                    score[i][j] += a[i].w * b[j].w;
                }
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float largest = top[i];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (start + tx + 16 * j >= s.keys) score[i][j] = -INFINITY;
                largest = fmaxf(largest, score[i][j]);
            }
#pragma unroll
            for (int far = 8; far > 0; far /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, far));
            const float shrink = exp2f(top[i] - largest);
            top[i] = largest;
            total[i] *= shrink;
#pragma unroll
            for (int c = 0; c < WW_ATT_OWN; ++c) sum[i][c] *= shrink;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float weight = exp2f(score[i][j] - largest);
                total[i] += weight;
                second[(ty * 4 + i) * WW_ATT_LONG + tx + 16 * j] = weight;
            }
        }
        __syncthreads();
#pragma unroll 4
        for (int key = 0; key < WW_ATT_KEYS; key += 4) {
            float4 w[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) w[i] = *(const float4*)(second + (ty * 4 + i) * WW_ATT_LONG + key);
#pragma unroll
            for (int c = 0; c < WW_ATT_OWN; ++c) {
                const int column = WW_ATT_OWN % 4 == 0 ? c / 4 * 64 + tx * 4 + c % 4 : tx + 16 * c;
                const float v0 = values[key * WW_ATT_WIDE + column], v1 = values[(key + 1) * WW_ATT_WIDE + column];
                const float v2 = values[(key + 2) * WW_ATT_WIDE + column], v3 = values[(key + 3) * WW_ATT_WIDE + column];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    sum[i][c] += w[i].x * v0;
                    sum[i][c] += w[i].y * v1;
                    sum[i][c] += w[i].z * v2;
                    sum[i][c] += w[i].w * v3;
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float all = total[i];
#pragma unroll
        for (int far = 8; far > 0; far /= 2) all += __shfl_xor_sync(0xffffffffu, all, far);
        const int row = first + ty * 4 + i;
        if (row < s.rows) {
#pragma unroll
            for (int c = 0; c < WW_ATT_OWN; ++c) {
                const int column = WW_ATT_OWN % 4 == 0 ? c / 4 * 64 + tx * 4 + c % 4 : tx + 16 * c;
                if (column < s.depth) out[head * s.o_head + row * s.o_row + column] = sum[i][c] / all;
            }
        }
    }
}

static void ww_attention(const float* q, const float* k, const float* v, float* out, int heads, ww_att_sizes s) {
    if (heads <= 0 || s.rows <= 0) return;
    cudaFuncSetAttribute(ww_att_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, WW_ATT_SHARED);
    ww_att_kernel<<<dim3((s.rows + WW_ATT_ROWS - 1) / WW_ATT_ROWS, heads), WW_ATT_THREADS, WW_ATT_SHARED>>>(q, k, v, out, s);
}
