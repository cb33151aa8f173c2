// c = a b for row-major float32 matrices a [m, k], b [k, n] on tensor cores, with float32's error: each number is cut into two of TF32, high + low, and
// the three products that matter are formed (low * high, high * low, high * high; low * low is below float32's last bit).
//
// Tensor cores cut off what they add up, which would pull a long sum towards zero: they sum over WW_TF_STEP elements alone, and those sums are added in
// float32. Inputs have to be finite (an infinite one has no low part). A block has 128 x 128 outputs, a warp 64 x 32.
// Least work: 2 * m * n * k operations, three times as many on the tensor cores.

#define WW_TF_STEP 16  // tune: 16 32; columns of a that a slice has

static const int WW_TF_TILE = 128, WW_TF_THREADS = 256, WW_TF_LEFT = WW_TF_STEP + 4, WW_TF_RIGHT = WW_TF_TILE + 8;  // rows that meet no bank twice
static const int WW_TF_HALF = WW_TF_TILE * WW_TF_LEFT + WW_TF_STEP * WW_TF_RIGHT, WW_TF_SHARED = 2 * WW_TF_HALF * 4;

static __device__ __forceinline__ void ww_tf_add(float* c, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void ww_tf_cut(float value, unsigned& high, unsigned& low) {
    high = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;  // to the nearest number of TF32
    low = __float_as_uint(value - __uint_as_float(high));
}

template <bool WHOLE>
static __global__ void __launch_bounds__(WW_TF_THREADS)
ww_tf_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    extern __shared__ float ww_tf_memory[];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32, group = lane / 4, place = lane % 4;
    const int row = warp / 4 * 64, column = warp % 4 * 32, top = blockIdx.y * WW_TF_TILE, side = blockIdx.x * WW_TF_TILE;
    const int a_row = t / (WW_TF_STEP / 4), a_k = t % (WW_TF_STEP / 4) * 4, b_k = t / 32, b_column = t % 32 * 4;
    const int turns = WW_TF_TILE * WW_TF_STEP / 4 / WW_TF_THREADS, a_next = WW_TF_THREADS / (WW_TF_STEP / 4), b_next = WW_TF_THREADS / 32;
    float4 a_own[turns], b_own[turns];
    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) sum[i][j][e] = 0.0f;
        }
    }
    const int slices = (k + WW_TF_STEP - 1) / WW_TF_STEP;
    for (int slice = -1; slice < slices; ++slice) {
        const int first = (slice + 1) * WW_TF_STEP;
        if (slice + 1 < slices) {
#pragma unroll
            for (int turn = 0; turn < turns; ++turn) {
                const int r = top + a_row + turn * a_next, at = first + a_k;
                if (WHOLE) {
                    a_own[turn] = *(const float4*)(a + (size_t)r * k + at);
                } else {
                    a_own[turn].x = r < m && at < k ? a[(size_t)r * k + at] : 0.0f;
                    a_own[turn].y = r < m && at + 1 < k ? a[(size_t)r * k + at + 1] : 0.0f;
                    a_own[turn].z = r < m && at + 2 < k ? a[(size_t)r * k + at + 2] : 0.0f;
                    a_own[turn].w = r < m && at + 3 < k ? a[(size_t)r * k + at + 3] : 0.0f;
                }
                const int down = first + b_k + turn * b_next, s = side + b_column;
                if (WHOLE) {
                    b_own[turn] = *(const float4*)(b + (size_t)down * n + s);
                } else {
                    b_own[turn].x = down < k && s < n ? b[(size_t)down * n + s] : 0.0f;
                    b_own[turn].y = down < k && s + 1 < n ? b[(size_t)down * n + s + 1] : 0.0f;
                    b_own[turn].z = down < k && s + 2 < n ? b[(size_t)down * n + s + 2] : 0.0f;
                    b_own[turn].w = down < k && s + 3 < n ? b[(size_t)down * n + s + 3] : 0.0f;
                }
            }
        }
        if (slice >= 0) {
            const float* left = ww_tf_memory + (slice & 1) * WW_TF_HALF;
            const float* right = left + WW_TF_TILE * WW_TF_LEFT;
            float part[4][4][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) part[i][j][e] = 0.0f;
                }
            }
#pragma unroll
            for (int at = 0; at < WW_TF_STEP; at += 8) {
                unsigned b_high[4][2], b_low[4][2];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        ww_tf_cut(right[(at + place + 4 * e) * WW_TF_RIGHT + column + 8 * j + group], b_high[j][e], b_low[j][e]);
                    }
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    unsigned a_high[4], a_low[4];
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        ww_tf_cut(left[(row + 16 * i + group + 8 * (e % 2)) * WW_TF_LEFT + at + place + 4 * (e / 2)], a_high[e], a_low[e]);
                    }
#pragma unroll
                    for (int j = 0; j < 4; ++j) ww_tf_add(part[i][j], a_low, b_high[j]);
#pragma unroll
                    for (int j = 0; j < 4; ++j) ww_tf_add(part[i][j], a_high, b_low[j]);
#pragma unroll
                    for (int j = 0; j < 4; ++j) ww_tf_add(part[i][j], a_high, b_high[j]);
                }
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) sum[i][j][e] += part[i][j][e];
                }
            }
        }
        if (slice + 1 < slices) {
            float* left = ww_tf_memory + ((slice + 1) & 1) * WW_TF_HALF;
            float* right = left + WW_TF_TILE * WW_TF_LEFT;
#pragma unroll
            for (int turn = 0; turn < turns; ++turn) {
                *(float4*)(left + (a_row + turn * a_next) * WW_TF_LEFT + a_k) = a_own[turn];
                *(float4*)(right + (b_k + turn * b_next) * WW_TF_RIGHT + b_column) = b_own[turn];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int r = top + row + 16 * i + group + 8 * half, s = side + column + 8 * j + 2 * place;
                if (WHOLE) {
                    *(float2*)(c + (size_t)r * n + s) = make_float2(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
                } else if (r < m) {
                    if (s < n) c[(size_t)r * n + s] = sum[i][j][2 * half];
                    if (s + 1 < n) c[(size_t)r * n + s + 1] = sum[i][j][2 * half + 1];
                }
            }
        }
    }
}

static void ww_product_tf32(const float* a, const float* b, float* c, int m, int n, int k) {
    if (m <= 0 || n <= 0) return;
    const dim3 grid((n + WW_TF_TILE - 1) / WW_TF_TILE, (m + WW_TF_TILE - 1) / WW_TF_TILE);
    const bool whole = m % WW_TF_TILE == 0 && n % WW_TF_TILE == 0 && k % WW_TF_STEP == 0 && ((size_t)a | (size_t)b | (size_t)c) % 16 == 0;
    if (whole) {
        cudaFuncSetAttribute(ww_tf_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, WW_TF_SHARED);
        ww_tf_kernel<true><<<grid, WW_TF_THREADS, WW_TF_SHARED>>>(a, b, c, m, n, k);
    } else {
        cudaFuncSetAttribute(ww_tf_kernel<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, WW_TF_SHARED);
        ww_tf_kernel<false><<<grid, WW_TF_THREADS, WW_TF_SHARED>>>(a, b, c, m, n, k);
    }
}
