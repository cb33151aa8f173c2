// A block of Hopper on a CPU: the words of CUDA that kernels use, and what is called in place of their assembler text (by hopper_cpu.py; the
// functions are in hopper_cpu.cpp).
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <tuple>

typedef unsigned int u32;
typedef unsigned long long u64;

#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local  // static inside a function, and not a contradiction to extern
#define storage hopper_storage   // the dynamic part, of all kernels

namespace hopper {

struct Launch {
    int grid, threads, shared;  // bytes of dynamic shared memory
    u64 seed;
    bool half;  // 16-bit numbers are float16, else bfloat16
};

struct Shape {  // of a product
    int columns, terms;
    bool add, integers, half, from_registers, turned;  // turned: rows of B in shared memory hold columns, not terms
    u64 a, b;
};

struct Index {
    u32 x, y, z;
};

extern Index thread, block, grid, threads;

[[noreturn]] void fail(const char* format, ...);
const char* run(const Launch& how, void (*body)(void*), void* argument);

u32 shared_address(const void* p);
u64 exchange(u32 kind, u64 value, u32 source);  // kind: the same in all lanes
u32 packed(float low, float high);

void init_barrier(u32 address, u32 count);
void show_barriers();
void arrive(u32 address, u32 bytes);
bool wait_for_barrier(u32 address, u32 parity);
u64 pass(int number, int threads);  // returns the number of its round
void meet(int number, int threads);

void copy_box(u32 to, const void* map, std::initializer_list<int> at, u32 barrier);

void fence_products();
void multiply(const Shape& of, void* sums, std::initializer_list<u32> registers);
void commit_products();
void wait_for_products(u64 left);
void set_registers(int count);

template <class T>
T taken(const char* packed, size_t& at) {
    constexpr size_t unit = alignof(T) < 8 ? alignof(T) : 8;
    T made;
    at = (at + unit - 1) / unit * unit;
    memcpy(&made, packed + at, sizeof made);
    at += sizeof made;
    return made;
}

// Run a kernel with arguments that lie as those of a struct, those of 128 bytes first.
template <class... T>
const char* launch(const Launch& how, void (*kernel)(T...), const char* packed) {
    size_t at = 0;
    const std::tuple<T...> given{taken<T>(packed, at)...};
    auto body = [&] { std::apply(kernel, given); };
    return run(how, [](void* argument) { (*(decltype(body)*)argument)(); }, &body);
}

}  // namespace hopper

#define threadIdx hopper::thread
#define blockIdx hopper::block
#define blockDim hopper::threads
#define gridDim hopper::grid

struct uint2 {
    u32 x, y;
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int min(int x, int y) { return x < y ? x : y; }
inline int max(int x, int y) { return x < y ? y : x; }

template <class To, class From>
To of_the_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To made;
    memcpy(&made, &value, sizeof made);
    return made;
}
inline float __int_as_float(int bits) { return of_the_bits<float>(bits); }
inline float __uint_as_float(u32 bits) { return of_the_bits<float>(bits); }
inline u32 __float_as_uint(float value) { return of_the_bits<u32>(value); }
inline float __fmul_rn(float x, float y) {
    volatile float product = x * y;  // never a part of a fused one
    return product;
}
inline double __hiloint2double(int high, int low) { return of_the_bits<double>((u64)(u32)high << 32 | (u32)low); }

inline size_t __cvta_generic_to_shared(const void* p) { return hopper::shared_address(p); }
inline void __syncthreads() { hopper::meet(0, (int)blockDim.x); }
inline void __syncwarp() { hopper::exchange(0, 0, 0); }
template <class T>
T of_lane(u32 lanes, T value, u32 kind, u32 lane) {
    if (lanes != 0xFFFFFFFFu) hopper::fail("a shuffle of a part of a warp");
    return of_the_bits<T>((u32)hopper::exchange(kind, of_the_bits<u32>(value), lane % 32));
}
template <class T>
T __shfl_xor_sync(u32 lanes, T value, int mask) {
    return of_lane(lanes, value, 1 + (u32)mask, threadIdx.x ^ (u32)mask);
}
template <class T>
T __shfl_sync(u32 lanes, T value, int lane) {
    return of_lane(lanes, value, 33 + (u32)lane, (u32)lane);
}
inline int __any_sync(u32 lanes, int holds) {
    for (int mask = 16; mask > 0; mask /= 2) holds |= __shfl_xor_sync(lanes, holds, mask);
    return holds;
}

// c += a b by a warp's mma.sync of TF32, 16 x 8 results of 8 terms: the last 13 bits of factors are left out, and sums are cut off, not rounded.
inline void multiply_tf32(std::initializer_list<float*> c, std::initializer_list<u32> a, std::initializer_list<u32> b) {
    const u32 group = threadIdx.x % 32 / 4, lane = threadIdx.x % 4, *const own = a.begin();
    double rows[2][8], columns[2][8];
    const auto number = [](u64 bits) { return (double)of_the_bits<float>((u32)bits & 0xffffe000u); };
    for (u32 term = 0; term < 4; ++term) {
        for (u32 half = 0; half < 2; ++half) {  // registers of terms 0 to 3, then of 4 to 7
            const u64 both = hopper::exchange(100 + 2 * term + half, (u64)own[2 * half + 1] << 32 | own[2 * half], 4 * group + term);
            rows[0][4 * half + term] = number(both), rows[1][4 * half + term] = number(both >> 32);
        }
        for (u32 column = 0; column < 2; ++column) {
            const u64 both = hopper::exchange(110 + 2 * term + column, (u64)b.begin()[1] << 32 | b.begin()[0], 4 * (2 * lane + column) + term);
            columns[column][term] = number(both), columns[column][4 + term] = number(both >> 32);
        }
    }
    for (u32 i = 0; i < 4; ++i) {
        double sum = *c.begin()[i];
        for (u32 term = 0; term < 8; ++term) sum += rows[i / 2][term] * columns[i % 2][term];
        float made = (float)sum;
        if (fabs((double)made) > fabs(sum)) made = nextafterf(made, 0.0f);
        *c.begin()[i] = made;
    }
}
inline int __popc(u32 x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline u32 packed_on_cpu(float low, float high) { return hopper::packed(low, high); }
