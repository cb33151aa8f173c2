// The CUDA driver by dlopen, and what it says of an address. Without a GPU, or before the program uses one, nothing is loaded.
#pragma once
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace warpwright::mpi::gpu {

using Pointer = std::uint64_t;
using Opaque = void*;

struct IpcHandle { // CUipcMemHandle, passed by value
    char bytes[64];
};

struct Driver {
    int (*device_attribute)(int*, int, int);
    int (*retain)(Opaque*, int);
    int (*state)(int, unsigned*, int*);
    int (*current)(Opaque*);
    int (*make_current)(Opaque);
    int (*load)(Opaque*, const void*);
    int (*function)(Opaque*, Opaque, const char*);
    int (*launch)(Opaque, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Opaque, void**, void**);
    int (*wait)(Opaque);
    int (*write)(Opaque, Pointer, unsigned, unsigned);
    int (*pointer_attributes)(unsigned, const int*, void**, Pointer);
    int (*allocate)(Pointer*, std::size_t);
    int (*release)(Pointer);
    int (*allocate_host)(void**, std::size_t, unsigned);
    int (*release_host)(void*);
    int (*copy)(Pointer, Pointer, std::size_t, Opaque);
    int (*fill)(Pointer, unsigned char, std::size_t);
    int (*export_memory)(IpcHandle*, Pointer);
    int (*open_memory)(Pointer*, IpcHandle, unsigned);
    int (*close_memory)(Pointer);
    int (*register_host)(void*, std::size_t, unsigned);
    int (*address_of_host)(Pointer*, void*, unsigned);
    bool complete = false;
};

// Names as the library exports them: where the interface has changed since CUDA 2 the suffix belongs to it.
inline Driver load_driver(void* library) {
    Driver driver{};
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        all = all && function;
    };
    find(driver.device_attribute, "cuDeviceGetAttribute"), find(driver.retain, "cuDevicePrimaryCtxRetain");
    find(driver.state, "cuDevicePrimaryCtxGetState"), find(driver.current, "cuCtxGetCurrent"), find(driver.make_current, "cuCtxSetCurrent");
    find(driver.load, "cuModuleLoadData"), find(driver.function, "cuModuleGetFunction"), find(driver.launch, "cuLaunchKernel");
    find(driver.wait, "cuStreamSynchronize"), find(driver.write, "cuStreamWriteValue32_v2");
    find(driver.pointer_attributes, "cuPointerGetAttributes"), find(driver.allocate, "cuMemAlloc_v2"), find(driver.release, "cuMemFree_v2");
    find(driver.allocate_host, "cuMemHostAlloc"), find(driver.release_host, "cuMemFreeHost"), find(driver.copy, "cuMemcpyAsync");
    find(driver.fill, "cuMemsetD8_v2"), find(driver.export_memory, "cuIpcGetMemHandle"), find(driver.open_memory, "cuIpcOpenMemHandle_v2");
    find(driver.close_memory, "cuIpcCloseMemHandle"), find(driver.register_host, "cuMemHostRegister_v2");
    find(driver.address_of_host, "cuMemHostGetDevicePointer_v2");
    driver.complete = all;
    return driver;
}

// How many libraries the process has loaded so far: a cheap sign that CUDA may have come since.
inline unsigned long long libraries_loaded() {
    unsigned long long loads = 0;
    dl_iterate_phdr([](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
    }, &loads);
    return loads;
}

// WARPWRIGHT_MPI_GPU=off: programs that use CUDA are left to the library.
inline bool wanted() {
    static const bool set = [] {
        const char* value = std::getenv("WARPWRIGHT_MPI_GPU");
        return !value || std::strcmp(value, "off");
    }();
    return set;
}

// Whether the program has loaded CUDA's driver, as `driver` saw it last.
inline std::atomic<bool> present{false};

// The driver once the program itself has loaded it, else null: a program on host buffers never touches CUDA.
inline Driver* driver() {
    static std::atomic<Driver*> loaded{nullptr};
    static std::atomic<unsigned long long> seen{0};
    if (Driver* known = loaded.load(std::memory_order_acquire)) return known;
    const unsigned long long now = libraries_loaded();
    if (seen.load(std::memory_order_relaxed) == now) return nullptr;
    void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (library) {
        present = true;
        static Driver found = load_driver(library);
        if (found.complete) {
            loaded.store(&found, std::memory_order_release);
            return &found;
        }
    }
    seen.store(now, std::memory_order_relaxed); // last: another thread must not take "not looked yet" for "not there"
    return nullptr;
}

// Whether a call must be left to the library because its buffers may be a GPU's; `known` is what `driver` returned just now.
inline bool avoided(const Driver* known) { return present.load(std::memory_order_relaxed) && !(known && wanted()); }
inline bool avoided() { return avoided(driver()); }

// Where brk has put the heap: its start as the kernel says, and the C library's own note of its end.
struct Heap {
    const char* start = nullptr;
    void* const* end = static_cast<void* const*>(dlsym(RTLD_DEFAULT, "__curbrk"));

    Heap() {
        std::FILE* maps = std::fopen("/proc/self/maps", "r");
        char line[512];
        while (maps && !start && std::fgets(line, sizeof line, maps))
            if (std::strstr(line, "[heap]")) start = reinterpret_cast<const char*>(std::strtoull(line, nullptr, 16));
        if (maps) std::fclose(maps);
    }
    bool holds(const void* pointer) const { return start && end && pointer >= start && pointer < *end; }
};

// Whether an address lies on the heap, which is never a GPU's: small objects mostly do. What `driver` asks of the loader takes 15 ns in a process of
// several threads, as long as it takes an MPI library to pack 100 bytes.
inline bool on_heap(const void* pointer) {
    static const Heap heap;
    return heap.holds(pointer);
}

// foreign: a GPU's, but not ours to touch: of another context than the device's primary one, or the driver would not say.
enum class Where { pageable, pinned, device, foreign };

struct Place {
    Where where = Where::pageable;
    int device = 0;
};

constexpr int most_devices = 64;

// The context that the runtime library uses. It is not made here: where nobody has, memory of it cannot exist.
inline Opaque primary_context(Driver& cuda, int ordinal) {
    static std::atomic<Opaque> contexts[most_devices];
    if (ordinal < 0 || ordinal >= most_devices) return nullptr;
    if (Opaque known = contexts[ordinal].load(std::memory_order_acquire)) return known;
    unsigned flags = 0;
    int active = 0;
    if (cuda.state(ordinal, &flags, &active) || !active) return nullptr;
    Opaque context = nullptr; // kept for the life of the process
    if (cuda.retain(&context, ordinal)) return nullptr;
    contexts[ordinal].store(context, std::memory_order_release);
    return context;
}

// What the driver says of an address, as it says it.
struct Said {
    int code = 0; // of the call: 0 on success
    unsigned kind = 0, managed = 0;
    int device = -1;
    Opaque context = nullptr;
    Pointer on_device = 0;
    Pointer start = 0;    // of the allocation
    std::size_t size = 0;
};

inline Said said_of(Driver& cuda, const void* pointer, bool ranges = false) {
    Said said;
    const int wanted[] = {2, 8, 9, 1, 3, 11, 12}; // memory type, is managed, device ordinal, context, address on the device, start and size of the range
    void* results[] = {&said.kind, &said.managed, &said.device, &said.context, &said.on_device, &said.start, &said.size};
    said.code = cuda.pointer_attributes(ranges ? 7 : 5, wanted, results, reinterpret_cast<Pointer>(pointer));
    return said;
}

inline Place place_of(Driver& cuda, const void* pointer, const Said& said) {
    constexpr int not_initialised = 3, deinitialised = 4, host = 1, device = 2;
    if (said.code == not_initialised || said.code == deinitialised) return {}; // nobody has memory of a GPU
    if (said.code) return {Where::foreign, 0};
    if (said.kind == 0) return {};
    if (said.managed) return {Where::pinned, said.device};
    if (said.kind == host) return {said.on_device == reinterpret_cast<Pointer>(pointer) ? Where::pinned : Where::pageable, said.device};
    if (said.kind != device) return {Where::foreign, said.device};
    if (said.context && said.context != primary_context(cuda, said.device)) return {Where::foreign, said.device};
    return {Where::device, said.device};
}

inline Place place_of(Driver& cuda, const void* pointer) { return place_of(cuda, pointer, said_of(cuda, pointer)); }

// The places of many addresses in one call: one question for each allocation of a GPU's context. Not to be kept, since memory may be freed after it.
class Places {
public:
    explicit Places(Driver& cuda) : cuda_(cuda) {}

    Place of(const void* pointer) {
        const auto address = reinterpret_cast<Pointer>(pointer);
        for (const Range& range : ranges_)
            if (address - range.start < range.size) return range.place;
        const Said said = said_of(cuda_, pointer, true);
        const Place place = place_of(cuda_, pointer, said);
        if (!said.code && said.context && place.where == Where::device) ranges_[next_++ % std::size(ranges_)] = {said.start, said.size, place};
        return place;
    }

private:
    struct Range {
        Pointer start = 0;
        std::size_t size = 0;
        Place place{};
    };
    Driver& cuda_;
    Range ranges_[8];
    std::size_t next_ = 0;
};

// A device's primary context, current in this thread for the life of this object: the thread may have none, or another.
class Current {
public:
    Current(Driver& cuda, int ordinal) : cuda_(cuda) {
        Opaque context = primary_context(cuda, ordinal);
        if (!context || cuda.current(&before_)) return;
        good_ = before_ == context;
        if (!good_) good_ = changed_ = cuda.make_current(context) == 0;
    }
    ~Current() {
        if (changed_) cuda_.make_current(before_);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    explicit operator bool() const { return good_; }

private:
    Driver& cuda_;
    Opaque before_ = nullptr;
    bool good_ = false, changed_ = false;
};

} // namespace warpwright::mpi::gpu
