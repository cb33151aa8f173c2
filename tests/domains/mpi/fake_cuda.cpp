// A CUDA driver and a run-time compiler without a GPU: device memory lies in ranges that the host may not touch (PROT_NONE), and that only a copy or
// a launch of this driver opens; a launch runs kernels.cu thread by thread on the CPU, with the memory of its own device open and no other.
//
// It lets the tests run the launcher, its arguments and the kernels' index arithmetic as they are. What it refuses, a GPU would refuse: a call before
// cuInit, a call without a current context (CUDA_ERROR_INVALID_CONTEXT), a word at an address that is not a multiple of its width, memory of no
// allocation. With FAKE_CUDA_OPEN the host may touch all memory, as an MPI library that knows GPUs does by the driver. A touch of device memory by the host prints what was touched and a backtrace, and ends the process. KERNELS is the path of kernels.cu.
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <atomic>
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

#include KERNELS

namespace {

enum Code { success = 0, invalid_value = 1, out_of_memory = 2, not_initialised = 3, invalid_context = 201, not_found = 500, unknown = 999 };
constexpr int device_count = 2, host = 1, device = 2; // as CUmemorytype

struct Memory { std::size_t size, mapped; int kind, device, file; };
std::map<std::uintptr_t, Memory> memories;
std::mutex guard;
const bool open_to_all = std::getenv("FAKE_CUDA_OPEN") != nullptr;
int contexts[device_count];
bool retained[device_count];
std::atomic<bool> initialised{false};
thread_local void* current = nullptr;
std::atomic<long> launches{0}, copies{0};
void* launched_on = nullptr;
std::atomic<int> answer_of_attributes{0}, launches_left{-1};
std::atomic<bool> broken{false}, lost{false}, exhausted{std::getenv("FAKE_CUDA_EXHAUSTED") != nullptr};
const bool no_ipc = std::getenv("FAKE_CUDA_NO_IPC") != nullptr;
constexpr std::size_t least_shared = 1 << 20; // from this size on memory can be exported: every such allocation holds a file

int device_of(void* context) { return static_cast<int>(static_cast<int*>(context) - contexts); }

// What every call that works on a device needs.
int ready() {
    if (!initialised) return not_initialised;
    return current ? success : invalid_context;
}

const std::pair<const std::uintptr_t, Memory>* memory_of(std::uintptr_t address) {
    auto after = memories.upper_bound(address);
    if (after == memories.begin()) return nullptr;
    --after;
    return address < after->first + after->second.size ? &*after : nullptr;
}

// Device memory that is open for the life of this object: of one device, or of all (-1: a copy). The lock is held meanwhile.
class Open {
public:
    explicit Open(int which) : which_(which), lock_(guard) { protect(PROT_READ | PROT_WRITE); }
    ~Open() { protect(PROT_NONE); }

private:
    void protect(int how) {
        if (open_to_all) return;
        for (const auto& [address, memory] : memories)
            if (memory.kind == device && (which_ < 0 || memory.device == which_)) mprotect(reinterpret_cast<void*>(address), memory.mapped, how);
    }
    int which_;
    std::lock_guard<std::mutex> lock_;
};

void touched(int, siginfo_t* info, void*) {
    char text[160];
    const auto* memory = memory_of(reinterpret_cast<std::uintptr_t>(info->si_addr)); // no lock: the process ends here
    const bool is_device = memory && memory->second.kind == device;
    const int size = std::snprintf(text, sizeof text, "fake CUDA driver: the host touched %p, %s\n", info->si_addr,
                                   is_device ? "memory of a device" : "which is no device's memory");
    void* frames[48];
    if (write(2, text, static_cast<std::size_t>(size)) < 0) _exit(97);
    backtrace_symbols_fd(frames, backtrace(frames, 48), 2);
    _exit(97);
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
std::map<std::string, Body> kernels = {ENTRIES(1), ENTRIES(2), ENTRIES(4), ENTRIES(8), ENTRIES(16), ENTRY(group), ENTRY(links)};

// Memory of this process, or another's that is opened by its file.
int map(std::uintptr_t* result, std::size_t bytes, std::size_t mapped, int kind, int file) {
    const int how = kind == device && !open_to_all ? PROT_NONE : PROT_READ | PROT_WRITE;
    void* memory = mmap(nullptr, mapped, how, file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    if (memory == MAP_FAILED) return out_of_memory;
    const std::lock_guard lock(guard);
    *result = reinterpret_cast<std::uintptr_t>(memory);
    memories[*result] = {bytes, mapped, kind, device_of(current), file};
    return success;
}

int allocate(std::uintptr_t* result, std::size_t bytes, int kind) {
    if (const int code = ready()) return code;
    if (!bytes) return invalid_value;
    if (exhausted) return out_of_memory;
    const std::size_t mapped = (bytes + 4095) / 4096 * 4096;
    const int file = kind == device && bytes >= least_shared ? memfd_create("fake_cuda", 0) : -1;
    if (file >= 0 && ftruncate(file, static_cast<off_t>(mapped))) return out_of_memory;
    return map(result, bytes, mapped, kind, file);
}

int release(std::uintptr_t address, int kind) {
    if (const int code = ready()) return code;
    const std::lock_guard lock(guard);
    const auto found = memories.find(address);
    if (found == memories.end() || found->second.kind != kind) return invalid_value;
    munmap(reinterpret_cast<void*>(address), found->second.mapped);
    if (found->second.file >= 0) close(found->second.file);
    memories.erase(found);
    return success;
}

int moved(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
    if (const int code = ready()) return code;
    if (broken) return unknown;
    const Open open(-1);
    ++copies;
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return success;
}

} // namespace

API int cuInit(unsigned) {
    if (initialised.exchange(true)) return success;
    struct sigaction action {};
    action.sa_sigaction = touched;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    return success;
}
API int cuDeviceGetAttribute(int* value, int, int) { *value = 0; return initialised ? success : not_initialised; } // sm_0: its code is cached beside no GPU's
API int cuDevicePrimaryCtxRetain(void** context, int device) {
    if (!initialised) return not_initialised;
    retained[device] = true;
    *context = &contexts[device];
    return success;
}
API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    if (!initialised) return not_initialised;
    *flags = 0, *active = retained[device];
    return success;
}
API int cuCtxGetCurrent(void** context) {
    if (!initialised) return not_initialised;
    *context = current;
    return success;
}
API int cuCtxSetCurrent(void* context) {
    if (!initialised) return not_initialised;
    current = context;
    return success;
}
API int cuModuleLoadData(void** module, const void* data) {
    if (const int code = ready()) return code;
    if (exhausted) return out_of_memory;
    *module = nullptr;
    return std::strcmp(static_cast<const char*>(data), "fake") ? 200 : success;
}
API int cuModuleGetFunction(void** function, void*, const char* name) {
    if (const int code = ready()) return code;
    const auto found = kernels.find(name);
    if (found == kernels.end()) return not_found;
    *function = &found->second;
    return success;
}
API int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void* stream,
                       void** arguments, void**) {
    launched_on = stream;
    if (const int code = ready()) return code;
    if (!blocks) return invalid_value;
    if (broken) return unknown;
    if (launches_left >= 0 && launches_left-- == 0) return out_of_memory;
    const Open open(device_of(current));
    ++launches;
    blockDim = {threads};
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = threads; threadIdx.x-- > 0;) (*static_cast<Body*>(function))(arguments); // thread 0 last, as after a barrier
    return success;
}
API int cuStreamSynchronize(void*) { return lost ? unknown : ready(); }
API int cuStreamWriteValue32_v2(void*, std::uintptr_t address, unsigned value, unsigned) {
    if (const int code = ready()) return code;
    if (lost) return success;
    const Open open(-1);
    *reinterpret_cast<unsigned*>(address) = value;
    return success;
}
API int cuPointerGetAttributes(unsigned count, const int* wanted, void** results, std::uintptr_t address) {
    if (!initialised) return not_initialised;
    if (answer_of_attributes) return answer_of_attributes;
    const std::lock_guard lock(guard);
    const auto* memory = memory_of(address);
    for (unsigned i = 0; i < count; ++i) switch (wanted[i]) {
        case 1: *static_cast<void**>(results[i]) = memory ? &contexts[memory->second.device] : nullptr; break;
        case 2: *static_cast<unsigned*>(results[i]) = memory ? static_cast<unsigned>(memory->second.kind) : 0; break;
        case 3: *static_cast<std::uintptr_t*>(results[i]) = memory ? address : 0; break;
        case 11: *static_cast<std::uintptr_t*>(results[i]) = memory ? memory->first : 0; break;
        case 12: *static_cast<std::size_t*>(results[i]) = memory ? memory->second.size : 0; break;
        case 8: *static_cast<unsigned char*>(results[i]) = 0; break;
        case 9: *static_cast<int*>(results[i]) = memory ? memory->second.device : -2; break;
        default: return invalid_value;
    }
    return success;
}
API int cuMemAlloc_v2(std::uintptr_t* result, std::size_t bytes) { return allocate(result, bytes, device); }
API int cuMemFree_v2(std::uintptr_t address) { return release(address, device); }
API int cuMemHostAlloc(void** result, std::size_t bytes, unsigned) { return allocate(reinterpret_cast<std::uintptr_t*>(result), bytes, host); }
API int cuMemFreeHost(void* address) { return release(reinterpret_cast<std::uintptr_t>(address), host); }
API int cuMemcpyAsync(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, void*) { return moved(to, from, bytes); }
API int cuMemcpy(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) { return moved(to, from, bytes); }
API int cuMemsetD8_v2(std::uintptr_t to, unsigned char value, std::size_t bytes) {
    if (const int code = ready()) return code;
    const Open open(-1);
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return success;
}
struct IpcHandle { pid_t process; int file; std::size_t size; char unused[64 - 16]; };
API int cuIpcGetMemHandle(IpcHandle* handle, std::uintptr_t address) {
    if (const int code = ready()) return code;
    const std::lock_guard lock(guard);
    const auto found = memories.find(address);
    if (no_ipc || found == memories.end() || found->second.file < 0) return invalid_value;
    *handle = {getpid(), found->second.file, found->second.size, {}};
    return success;
}
API int cuIpcOpenMemHandle_v2(std::uintptr_t* result, IpcHandle handle, unsigned) {
    if (const int code = ready()) return code;
    if (handle.process == getpid()) return invalid_context;
    const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
    char name[64] = {}; // what was freed meanwhile, or its process's end, may have given the number to another file: an MPI library's queue, say
    if (readlink(path.c_str(), name, sizeof name - 1) < 0 || std::string(name).rfind("/memfd:fake_cuda", 0) != 0) return invalid_value;
    const int file = open(path.c_str(), O_RDWR);
    return file < 0 ? invalid_value : map(result, handle.size, (handle.size + 4095) / 4096 * 4096, device, file);
}
API int cuMemHostRegister_v2(void*, std::size_t, unsigned) { return no_ipc ? invalid_value : ready(); }
API int cuMemHostGetDevicePointer_v2(std::uintptr_t* result, void* memory, unsigned) {
    *result = reinterpret_cast<std::uintptr_t>(memory);
    return ready();
}
API int cuIpcCloseMemHandle(std::uintptr_t address) { return release(address, device); }
// Of the interface before CUDA 4, with 32-bit sizes: the real library still exports them, and who calls them is wrong.
API int cuMemAlloc(unsigned*, unsigned) { std::abort(); }
API int cuMemFree(unsigned) { std::abort(); }
API int cuMemsetD8(unsigned, unsigned char, unsigned) { std::abort(); }

API int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) { *program = nullptr; return 0; }
API int nvrtcCompileProgram(void*, int, const char* const*) { return 0; }
API int nvrtcGetCUBINSize(void*, std::size_t* size) { *size = 5; return 0; }
API int nvrtcGetCUBIN(void*, char* code) { std::memcpy(code, "fake", 5); return 0; }
API int nvrtcGetProgramLogSize(void*, std::size_t* size) { *size = 0; return 0; }
API int nvrtcGetProgramLog(void*, char*) { return 0; }

API long fake_launches() { return launches; }
API void* fake_stream() { return launched_on; } // of the last launch
API long fake_copies() { return copies; }
API void fake_attributes(int code) { answer_of_attributes = code; } // what cuPointerGetAttributes answers from now on
API void fake_exhaust(int now) { exhausted = now != 0; } // whether memory is refused from now on, and code of kernels
API void fake_broken(int now) { broken = now != 0; } // whether every copy and launch fails from now on
API void fake_lose(int now) { lost = now != 0; } // whether kernels fail after their launch: nothing is written, and waiting fails
API void fake_refuse_after(int launches) { launches_left = launches; } // then a launch fails once; -1: none fails
