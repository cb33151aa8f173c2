// Running sums of a vector in one pass over it: out[i] = x[0] + ... + x[i].
//
// A block takes the next tile of the vector, sums it up in registers and says the tile's sum; its first warp then looks back over the tiles before,
// 32 at a time, until one knows the sum of all up to itself (decoupled look-back: Merrill and Garland, NVR-2016-002). Sums over tiles are in float64,
// with two bits of the mantissa for what a word is, so that one word of 8 bytes is all that blocks tell each other: no fence is needed.
// Least traffic: 8 bytes an element.

#define WW_SCAN_THREADS 256  // tune: 128 256 512
#define WW_SCAN_VECTORS 4    // tune: 2 4 8; vectors of four elements that a thread has of a tile

static const unsigned long long WW_SCAN_TILE_SUM = 1, WW_SCAN_RUNNING_SUM = 2;  // what a word is; 0: not there yet

static __global__ void ww_scan_kernel(const float* __restrict__ x, float* __restrict__ out, long long n, unsigned long long* words, unsigned* next) {
    __shared__ float parts[WW_SCAN_THREADS / 32];
    __shared__ unsigned chosen;
    __shared__ double running;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) chosen = atomicAdd(next, 1u);  // blocks begin in any order: a tile's predecessors are at work already
    __syncthreads();
    const int tile = (int)chosen;
    const long long first = (long long)tile * (WW_SCAN_THREADS * WW_SCAN_VECTORS * 4) + warp * (32 * WW_SCAN_VECTORS * 4);
    const bool whole = first + 32 * WW_SCAN_VECTORS * 4 <= n && ((size_t)x | (size_t)out) % 16 == 0;
    float4 own[WW_SCAN_VECTORS];
#pragma unroll
    for (int v = 0; v < WW_SCAN_VECTORS; ++v) {
        const long long at = first + v * 128 + lane * 4;
        if (whole) {
            own[v] = *(const float4*)(x + at);
        } else {
            own[v].x = at < n ? x[at] : 0.0f;
            own[v].y = at + 1 < n ? x[at + 1] : 0.0f;
            own[v].z = at + 2 < n ? x[at + 2] : 0.0f;
            own[v].w = at + 3 < n ? x[at + 3] : 0.0f;
        }
    }
    float carried = 0.0f;  // sum of the warp's vectors so far
#pragma unroll
    for (int v = 0; v < WW_SCAN_VECTORS; ++v) {
        own[v].y += own[v].x;
        own[v].z += own[v].y;
        own[v].w += own[v].z;
        float sum = own[v].w;
#pragma unroll
        for (int far = 1; far < 32; far *= 2) {
            const float before = __shfl_up_sync(0xffffffffu, sum, far);
            if (lane >= far) sum += before;
        }
        const float left = __shfl_up_sync(0xffffffffu, sum, 1);
        const float base = carried + (lane > 0 ? left : 0.0f);
        carried += __shfl_sync(0xffffffffu, sum, 31);
        own[v].x += base;
        own[v].y += base;
        own[v].z += base;
        own[v].w += base;
    }
    if (lane == 0) parts[warp] = carried;
    __syncthreads();
    float before = 0.0f, total = 0.0f;
#pragma unroll
    for (int w = 0; w < WW_SCAN_THREADS / 32; ++w) {
        if (w < warp) before += parts[w];
        total += parts[w];
    }
    if (warp == 0) {
        double sum = 0.0;
        if (tile > 0) {
            if (lane == 0) {
                atomicExch(&words[tile], ((unsigned long long)__double_as_longlong((double)total) & ~3ull) | WW_SCAN_TILE_SUM);
            }
            for (int last = tile - 1; last >= 0; last -= 32) {
                const int mine = last - lane;
                unsigned long long word = WW_SCAN_RUNNING_SUM;  // in front of the first tile: a running sum of zero
                if (mine >= 0) {
                    do {
                        word = *(volatile unsigned long long*)(words + mine);
                    } while (word == 0);
                }
                const unsigned known = __ballot_sync(0xffffffffu, (word & 3ull) == WW_SCAN_RUNNING_SUM);
                const int stop = known ? __ffs((int)known) - 1 : 31;
                double part = lane <= stop ? __longlong_as_double((long long)(word & ~3ull)) : 0.0;
#pragma unroll
                for (int far = 16; far > 0; far /= 2) part += __shfl_xor_sync(0xffffffffu, part, far);
                sum += part;
                if (known) break;
            }
        }
        if (lane == 0) {
            atomicExch(&words[tile], ((unsigned long long)__double_as_longlong(sum + (double)total) & ~3ull) | WW_SCAN_RUNNING_SUM);
            running = sum;
        }
    }
    __syncthreads();
    const double base = running;
#pragma unroll
    for (int v = 0; v < WW_SCAN_VECTORS; ++v) {
        const long long at = first + v * 128 + lane * 4;
        float4 made;
        made.x = (float)(base + (double)(before + own[v].x));
        made.y = (float)(base + (double)(before + own[v].y));
        made.z = (float)(base + (double)(before + own[v].z));
        made.w = (float)(base + (double)(before + own[v].w));
        if (whole) {
            *(float4*)(out + at) = made;
        } else {
            if (at < n) out[at] = made.x;
            if (at + 1 < n) out[at + 1] = made.y;
            if (at + 2 < n) out[at + 2] = made.z;
            if (at + 3 < n) out[at + 3] = made.w;
        }
    }
}

static void ww_prefix_sum(const float* x, float* out, long long n) {
    if (n <= 0) return;
    const long long tile = WW_SCAN_THREADS * WW_SCAN_VECTORS * 4;
    const long long tiles = (n + tile - 1) / tile;
    unsigned long long* words = 0;
    cudaMallocAsync(&words, (tiles + 1) * sizeof(unsigned long long), 0);
    cudaMemsetAsync(words, 0, (tiles + 1) * sizeof(unsigned long long), 0);
    ww_scan_kernel<<<(unsigned)tiles, WW_SCAN_THREADS>>>(x, out, n, words, (unsigned*)(words + tiles));
    cudaFreeAsync(words, 0);
}
