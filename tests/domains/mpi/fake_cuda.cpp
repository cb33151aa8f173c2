// A CUDA driver and a run-time compiler without a GPU: device memory is host memory, a launch runs kernels.cu thread by thread on the CPU.
//
// It lets the tests run the launcher, its arguments and the kernels' index arithmetic as they are. What it refuses, a GPU would refuse: a word at
// an address that is not a multiple of its width, memory of no allocation. KERNELS is the path of kernels.cu.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#define API extern "C" __attribute__((visibility("default")))
#define __global__
#define __device__
#define __forceinline__ inline
#define GRID_CONSTANT

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct Index { unsigned x; };
static thread_local Index blockIdx, threadIdx, blockDim;
static void __syncthreads() {}
static void __threadfence_system() {}
static unsigned atomicAdd(unsigned* where, unsigned value) { unsigned before = *where; *where += value; return before; }

#include KERNELS

namespace {

struct Memory { std::size_t size; int kind, device; }; // kind as CUmemorytype: 1 host, 2 device
std::map<std::uintptr_t, Memory> memories;
std::mutex guard;
int contexts[2];
thread_local void* current = nullptr;
int device_of_next = 0;
long launches = 0;

const Memory* memory_of(std::uintptr_t address) {
    auto after = memories.upper_bound(address);
    if (after == memories.begin()) return nullptr;
    --after;
    return address < after->first + after->second.size ? &after->second : nullptr;
}

using Body = std::function<void(void**)>;

template <class... A, std::size_t... I>
Body body_of(void (*kernel)(A...), std::index_sequence<I...>) {
    return [kernel](void** arguments) { kernel(*static_cast<std::remove_const_t<A>*>(arguments[I])...); };
}
template <class... A>
Body body(void (*kernel)(A...)) { return body_of(kernel, std::index_sequence_for<A...>()); }

#define ENTRY(name) {#name, body(name)}
#define ENTRIES(W) ENTRY(nest_##W##_1_1), ENTRY(nest_##W##_2_1), ENTRY(nest_##W##_3_1), ENTRY(nest_##W##_4_1), ENTRY(nest_##W##_1_4), \
    ENTRY(nest_##W##_2_4), ENTRY(nest_##W##_3_4), ENTRY(nest_##W##_4_4), ENTRY(tree_##W)
std::map<std::string, Body> kernels = {ENTRIES(1), ENTRIES(2), ENTRIES(4), ENTRIES(8), ENTRIES(16), ENTRY(group)};

int allocate(std::uintptr_t* result, std::size_t bytes, int kind) {
    const std::lock_guard lock(guard);
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    *result = reinterpret_cast<std::uintptr_t>(memory);
    memories[*result] = {bytes, kind, device_of_next};
    return 0;
}

int release(std::uintptr_t address) {
    const std::lock_guard lock(guard);
    if (!memories.erase(address)) return 1;
    std::free(reinterpret_cast<void*>(address));
    return 0;
}

} // namespace

API int cuInit(unsigned) { return 0; }
API int cuDeviceGetAttribute(int* value, int, int) { *value = 0; return 0; } // sm_0: its machine code is cached beside no GPU's
API int cuDevicePrimaryCtxRetain(void** context, int device) { *context = &contexts[device]; return 0; }
API int cuCtxGetCurrent(void** context) { *context = current; return 0; }
API int cuCtxSetCurrent(void* context) { current = context; return 0; }
API int cuModuleLoadData(void** module, const void* data) { *module = nullptr; return std::strcmp(static_cast<const char*>(data), "fake") != 0; }
API int cuModuleGetFunction(void** function, void*, const char* name) {
    const auto found = kernels.find(name);
    if (found == kernels.end()) return 500;
    *function = &found->second;
    return 0;
}
API int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void*, void** arguments, void**) {
    ++launches;
    blockDim = {threads};
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = threads; threadIdx.x-- > 0;) (*static_cast<Body*>(function))(arguments); // thread 0 last, as after a barrier
    return 0;
}
API int cuStreamSynchronize(void*) { return 0; }
API int cuStreamWriteValue32_v2(void*, std::uintptr_t address, unsigned value, unsigned) { *reinterpret_cast<unsigned*>(address) = value; return 0; }
API int cuPointerGetAttributes(unsigned count, const int* wanted, void** results, std::uintptr_t address) {
    const std::lock_guard lock(guard);
    const Memory* memory = memory_of(address);
    for (unsigned i = 0; i < count; ++i) switch (wanted[i]) {
        case 2: *static_cast<unsigned*>(results[i]) = memory ? static_cast<unsigned>(memory->kind) : 0; break;
        case 8: *static_cast<unsigned*>(results[i]) = 0; break;
        case 9: *static_cast<int*>(results[i]) = memory ? memory->device : -2; break;
        case 1: *static_cast<void**>(results[i]) = memory ? &contexts[memory->device] : nullptr; break;
        default: return 1;
    }
    return 0;
}
API int cuMemAlloc_v2(std::uintptr_t* result, std::size_t bytes) { return allocate(result, bytes, 2); }
API int cuMemFree_v2(std::uintptr_t address) { return release(address); }
API int cuMemHostAlloc(void** result, std::size_t bytes, unsigned) { return allocate(reinterpret_cast<std::uintptr_t*>(result), bytes, 1); }
API int cuMemFreeHost(void* address) { return release(reinterpret_cast<std::uintptr_t>(address)); }
API int cuMemcpyAsync(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void*) {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return 0;
}
API int cuMemsetD8_v2(std::uintptr_t to, unsigned char value, std::size_t bytes) { std::memset(reinterpret_cast<void*>(to), value, bytes); return 0; }

API int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) { *program = nullptr; return 0; }
API int nvrtcCompileProgram(void*, int, const char* const*) { return 0; }
API int nvrtcGetCUBINSize(void*, std::size_t* size) { *size = 5; return 0; }
API int nvrtcGetCUBIN(void*, char* code) { std::memcpy(code, "fake", 5); return 0; }
API int nvrtcGetProgramLogSize(void*, std::size_t* size) { *size = 0; return 0; }
API int nvrtcGetProgramLog(void*, char*) { return 0; }

API long fake_launches() { return launches; }
API void fake_device(int device) { device_of_next = device; }
