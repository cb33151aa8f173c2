// What the child process that measures does on the device besides the kernel: fills arrays, compares them bit by bit, digests them, looks at guards.

__device__ __forceinline__ unsigned mix(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352dU, x ^= x >> 15, x *= 0x846ca68bU;
    return x ^ x >> 16;
}

// A sum of four uniform numbers: mean 0, standard deviation 0.577.
__device__ __forceinline__ float number(unsigned long long i, unsigned seed) {
    const unsigned a = mix((unsigned)i * 2u + seed * 0x9e3779b9u), b = mix((unsigned)(i >> 31) + a + 0x1234567u);
    return ((a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16)) * (1.0f / 65536.0f) - 2.0f;
}

__device__ __forceinline__ unsigned short half_of(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

__device__ __forceinline__ unsigned short bfloat_of(float x) {
    const unsigned bits = __float_as_uint(x);
    return (unsigned short)(bits + 0x7fff + (bits >> 16 & 1) >> 16);
}

__device__ __forceinline__ unsigned char e4m3_of(float x) {
    unsigned short bits = 0;
#if __CUDA_ARCH__ >= 890
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(bits) : "f"(x));
#endif
    return (unsigned char)bits;
}

// kind: 0 f32, 1 f16, 2 bf16, 3 i32 (from 0 on, below scale), 4 e4m3 (from sm_89 on)
extern "C" __global__ void fill(void* to, unsigned long long count, unsigned seed, float scale, float offset, int kind) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const float value = number(i, seed) * scale + offset;
        if (kind == 0) ((float*)to)[i] = value;
        if (kind == 1) ((unsigned short*)to)[i] = half_of(value);
        if (kind == 2) ((unsigned short*)to)[i] = bfloat_of(value);
        if (kind == 3) ((int*)to)[i] = (int)(mix((unsigned)i + seed * 0x9e3779b9u) % (unsigned)fmaxf(scale, 1.0f));
        if (kind == 4) ((unsigned char*)to)[i] = e4m3_of(value);
    }
}

// Adds the number of 32-bit words that differ.
extern "C" __global__ void compare(const unsigned* a, const unsigned* b, unsigned long long count, unsigned long long* differ) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned found = 0;
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count; i += step) found += a[i] != b[i];
    if (found) atomicAdd(differ, (unsigned long long)found);
}

// Adds a digest of the words, whatever the order in which blocks come.
extern "C" __global__ void digest(const unsigned* a, unsigned long long count, unsigned long long* sum) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long mine = 0;
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count; i += step) mine += mix(a[i] ^ mix((unsigned)i));
    atomicAdd(sum, mine);
}

// Adds the number of words of the guards behind arrays that are not `word`, and makes them so again: what one candidate broke is not the next one's
// fault. `where`: the addresses of `count` guards of `words` words each.
extern "C" __global__ void guards(unsigned* const* where, unsigned long long count, unsigned words, unsigned word, unsigned long long* broken) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < count * words; i += step) {
        unsigned* at = where[i / words] + i % words;
        if (*at != word) atomicAdd(broken, 1ull), *at = word;
    }
}
