// The GPU side: the CUDA driver by dlopen, the kernels by NVRTC, launches and waiting. Without a GPU, or before the program uses one, nothing is
// loaded. Whatever fails answers false, and the caller leaves the work to the MPI library.
#pragma once
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "kernel_arguments.hpp"
#include "pack_cpu.hpp"
#include "kernels.cu"

namespace warpwright::mpi::gpu {

using Pointer = std::uint64_t;
using Opaque = void*;

struct Driver {
    int (*init)(unsigned);
    int (*device_attribute)(int*, int, int);
    int (*retain)(Opaque*, int);
    int (*current)(Opaque*);
    int (*make_current)(Opaque);
    int (*load)(Opaque*, const void*);
    int (*function)(Opaque*, Opaque, const char*);
    int (*launch)(Opaque, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Opaque, void**, void**);
    int (*wait)(Opaque);
    int (*write)(Opaque, Pointer, u32, unsigned);
    int (*pointer_attributes)(unsigned, const int*, void**, Pointer);
    int (*allocate)(Pointer*, std::size_t);
    int (*release)(Pointer);
    int (*allocate_host)(void**, std::size_t, unsigned);
    int (*release_host)(void*);
    int (*copy)(Pointer, Pointer, std::size_t, Opaque);
    int (*fill)(Pointer, unsigned char, std::size_t);
    bool complete = false;
};

inline Driver load_driver(void* library) {
    Driver driver{};
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        all = all && function;
    };
    find(driver.init, "cuInit"), find(driver.device_attribute, "cuDeviceGetAttribute"), find(driver.retain, "cuDevicePrimaryCtxRetain");
    find(driver.current, "cuCtxGetCurrent"), find(driver.make_current, "cuCtxSetCurrent"), find(driver.load, "cuModuleLoadData");
    find(driver.function, "cuModuleGetFunction"), find(driver.launch, "cuLaunchKernel"), find(driver.wait, "cuStreamSynchronize");
    find(driver.write, "cuStreamWriteValue32_v2"), find(driver.pointer_attributes, "cuPointerGetAttributes");
    find(driver.allocate, "cuMemAlloc_v2"), find(driver.release, "cuMemFree_v2"), find(driver.allocate_host, "cuMemHostAlloc");
    find(driver.release_host, "cuMemFreeHost"), find(driver.copy, "cuMemcpyAsync"), find(driver.fill, "cuMemsetD8_v2");
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

// WARPWRIGHT_MPI_GPU=1: programs that use CUDA are served. Off by default, because this file has only run on the driver of the tests: its one run
// on a GPU ended with a segmentation fault before the first byte was packed, perhaps because a GPU's address was taken for the host's.
inline bool wanted() {
    static const bool set = [] {
        const char* value = std::getenv("WARPWRIGHT_MPI_GPU");
        return value && !std::strcmp(value, "1");
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
    seen.store(now, std::memory_order_relaxed);
    void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return nullptr;
    present = true;
    static Driver found = load_driver(library);
    if (!found.complete) return nullptr;
    loaded.store(&found, std::memory_order_release);
    return &found;
}

// Whether a call must be left to the library because its buffers may be a GPU's.
inline bool avoided() {
    const bool usable = driver() != nullptr;
    return present && !(usable && wanted());
}

enum class Where { pageable, pinned, device, foreign }; // foreign: another context than the device's primary one

struct Place {
    Where where = Where::pageable;
    int device = 0;
};

Opaque primary_context(Driver& cuda, int device);

inline Place place_of(Driver& cuda, const void* pointer) {
    unsigned kind = 0, managed = 0;
    int device = -1;
    Opaque context = nullptr;
    const int wanted[] = {2, 8, 9, 1}; // memory type, is managed, device ordinal, context
    void* results[] = {&kind, &managed, &device, &context};
    if (cuda.pointer_attributes(4, wanted, results, reinterpret_cast<Pointer>(pointer)) || kind == 0) return {};
    if (managed || kind == 1) return {Where::pinned, device};
    if (context && context != primary_context(cuda, device)) return {Where::foreign, device};
    return {Where::device, device};
}

// --- compilation -------------------------------------------------------------------------------------------------------------------------

struct Compiler {
    int (*create)(Opaque*, const char*, const char*, int, const char* const*, const char* const*);
    int (*compile)(Opaque, int, const char* const*);
    int (*size)(Opaque, std::size_t*);
    int (*code)(Opaque, char*);
    int (*log_size)(Opaque, std::size_t*);
    int (*log)(Opaque, char*);
};

inline void* open_compiler() {
    if (const char* path = std::getenv("WARPWRIGHT_NVRTC")) { // found by Python in NVIDIA's registry packages
        const std::string library = path, builtins = library.substr(0, library.rfind('/')) + "/libnvrtc-builtins.so" + library.substr(library.rfind(".so") + 3);
        dlopen(builtins.c_str(), RTLD_NOW); // libnvrtc opens it by name, outside the loader's path
        if (void* opened = dlopen(path, RTLD_NOW)) return opened;
    }
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
        if (void* opened = dlopen(name, RTLD_NOW)) return opened;
    return nullptr;
}

inline std::string compiled(const std::string& arch) {
    void* library = open_compiler();
    if (!library) {
        std::fprintf(stderr, "warpwright.mpi: expected NVIDIA's run-time compiler libnvrtc, saw none: GPU buffers are left to the MPI library; "
                             "pip install nvidia-cuda-nvrtc\n");
        return {};
    }
    Compiler nvrtc{};
    const auto find = [&](auto& function, const char* name) { function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name)); };
    find(nvrtc.create, "nvrtcCreateProgram"), find(nvrtc.compile, "nvrtcCompileProgram"), find(nvrtc.size, "nvrtcGetCUBINSize");
    find(nvrtc.code, "nvrtcGetCUBIN"), find(nvrtc.log_size, "nvrtcGetProgramLogSize"), find(nvrtc.log, "nvrtcGetProgramLog");
    Opaque program = nullptr;
    const std::string target = "--gpu-architecture=sm_" + arch;
    const char* options[] = {target.c_str(), "--std=c++17"};
    std::size_t size = 0;
    if (nvrtc.create(&program, kernel_source, "kernels.cu", 0, nullptr, nullptr)) return {};
    if (nvrtc.compile(program, 2, options)) {
        nvrtc.log_size(program, &size);
        std::string log(size, ' ');
        nvrtc.log(program, log.data());
        std::fprintf(stderr, "warpwright.mpi: NVRTC refused kernels.cu: GPU buffers are left to the MPI library\n%s\n", log.c_str());
        return {};
    }
    if (nvrtc.size(program, &size)) return {};
    std::string code(size, ' ');
    return nvrtc.code(program, code.data()) ? std::string() : code;
}

// The kernels' machine code, compiled once for each text and architecture (about two seconds).
inline std::string machine_code(const std::string& arch) {
    const char* cache = std::getenv("WARPWRIGHT_CACHE");
    const char* home = std::getenv("HOME");
    const std::string folder = cache ? cache : std::string(home ? home : "/tmp") + "/.cache/warpwright";
    std::ostringstream name;
    name << folder << "/mpi_" << std::hex << std::hash<std::string>()(kernel_source) << "_" << arch << ".cubin";
    std::ifstream kept(name.str(), std::ios::binary);
    if (kept) return std::string(std::istreambuf_iterator<char>(kept), {});
    const std::string code = compiled(arch);
    if (code.empty()) return code;
    const std::string fresh = name.str() + "." + std::to_string(reinterpret_cast<std::uintptr_t>(&code)) + std::to_string(std::rand());
    std::ofstream(fresh, std::ios::binary).write(code.data(), static_cast<std::streamsize>(code.size()));
    std::rename(fresh.c_str(), name.str().c_str()); // atomic: two builders of the same text are no race
    return code;
}

// --- a device ----------------------------------------------------------------------------------------------------------------------------

enum class Waiting { stream, flag, write };

// WARPWRIGHT_MPI_WAIT: how the end of a kernel is learned: stream (cuStreamSynchronize), flag (its last block stores to host memory), write
// (a stream memory operation stores to host memory).
inline Waiting& waiting() {
    static Waiting how = [] {
        const char* value = std::getenv("WARPWRIGHT_MPI_WAIT");
        if (value && !std::strcmp(value, "stream")) return Waiting::stream;
        if (value && !std::strcmp(value, "write")) return Waiting::write;
        return Waiting::flag;
    }();
    return how;
}

// A buffer that grows, one user at a time.
struct Scratch {
    std::mutex busy;
    Pointer device = 0;
    void* host = nullptr;
    std::size_t device_room = 0, host_room = 0;
};

// The tables of a tree in device memory.
struct Uploaded {
    NodeRef node; // kept, so that the address stays this node's
    Pointer memory = 0;
    std::size_t at[4] = {};
};

struct Device {
    Opaque context = nullptr, module = nullptr;
    Opaque nest[5][deepest_nest][2] = {}; // [log2 of the width][depth - 1][1 or 4 words a thread]
    Opaque tree[5] = {}, group = nullptr;
    Opaque stream = reinterpret_cast<Opaque>(1); // CU_STREAM_LEGACY: ordered with what the program launched on its default stream
    volatile u32* flag = nullptr;
    Pointer arrived = 0;
    u32 ticket = 0;
    std::mutex busy; // of the flag and the tables: one launch is awaited at a time
    std::map<std::pair<const void*, u32>, Uploaded> tables; // by node and width, for the layouts used last
    Scratch scratch;
    bool usable = false;
};

inline bool set_up(Driver& cuda, Device& device, int ordinal) {
    int major = 0, minor = 0;
    if (cuda.device_attribute(&major, 75, ordinal) || cuda.device_attribute(&minor, 76, ordinal)) return false;
    const std::string code = machine_code(std::to_string(major * 10 + minor));
    if (code.empty() || cuda.load(&device.module, code.data())) return false;
    const auto find = [&](Opaque& kernel, const std::string& name) { return cuda.function(&kernel, device.module, name.c_str()) == 0; };
    for (int w = 0; w < 5; ++w) {
        const std::string width = std::to_string(1 << w);
        for (int depth = 0; depth < deepest_nest; ++depth)
            for (int many = 0; many < 2; ++many)
                if (!find(device.nest[w][depth][many], "nest_" + width + "_" + std::to_string(depth + 1) + (many ? "_4" : "_1"))) return false;
        if (!find(device.tree[w], "tree_" + width)) return false;
    }
    void* flag = nullptr;
    if (!find(device.group, "group") || cuda.allocate(&device.arrived, 4) || cuda.fill(device.arrived, 0, 4)) return false;
    if (cuda.allocate_host(&flag, 64, 3)) return false; // portable, mapped
    device.flag = static_cast<volatile u32*>(flag);
    *device.flag = 0;
    return true;
}

constexpr int most_devices = 64;

inline Opaque primary_context(Driver& cuda, int ordinal) {
    static std::atomic<Opaque> contexts[most_devices];
    if (ordinal < 0 || ordinal >= most_devices) return nullptr;
    if (Opaque known = contexts[ordinal].load(std::memory_order_acquire)) return known;
    Opaque context = nullptr; // kept for the life of the process
    if (cuda.retain(&context, ordinal)) return nullptr;
    contexts[ordinal].store(context, std::memory_order_release);
    return context;
}

// The device with its kernels loaded and its context current in this thread for the life of this object.
class Use {
public:
    Use(Driver& cuda, int ordinal) : cuda_(cuda) {
        static Device devices[most_devices];
        static std::once_flag once[most_devices];
        if (ordinal < 0 || ordinal >= most_devices) return;
        Opaque context = primary_context(cuda, ordinal);
        if (!context || cuda.current(&before_)) return;
        if (before_ != context) changed_ = cuda.make_current(context) == 0;
        if (before_ != context && !changed_) return;
        Device& device = devices[ordinal];
        std::call_once(once[ordinal], [&] { device.context = context, device.usable = set_up(cuda, device, ordinal); });
        if (device.usable) device_ = &device;
    }
    ~Use() {
        if (changed_) cuda_.make_current(before_);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return device_ != nullptr; }
    Device& operator*() const { return *device_; }
    Device* operator->() const { return device_; }

private:
    Driver& cuda_;
    Opaque before_ = nullptr;
    bool changed_ = false;
    Device* device_ = nullptr;
};

// --- launches ----------------------------------------------------------------------------------------------------------------------------

inline u32 log2_of(u32 width) { return static_cast<u32>(std::countr_zero(width)); }

// From here on a thread moves four words: enough blocks for every multiprocessor remain.
constexpr Bytes many_words = Bytes(1) << 20;

struct Launch {
    Driver& cuda;
    Device& device;
    int unpack;
    bool waited = true; // false: the work is left on the stream
    DoneArguments done{};

    void announce(u32 blocks, bool last) {
        done = {};
        if (last && waited && waiting() == Waiting::flag) done = {reinterpret_cast<void*>(device.arrived), const_cast<u32*>(device.flag), ++device.ticket, blocks};
    }

    bool start(Opaque kernel, u32 blocks, void** arguments) {
        return cuda.launch(kernel, blocks, 1, 1, threads, 1, 1, 0, device.stream, arguments, nullptr) == 0;
    }

    bool nest(RequestArguments& request, bool last) {
        const bool many = request.words >= many_words;
        const u32 each = threads * (many ? 4 : 1), blocks = (request.words + each - 1) / each;
        announce(blocks, last);
        void* arguments[] = {&request.strided, &request.packed, &request.words, &unpack, &request.nest, &done};
        return start(device.nest[log2_of(request.width)][request.depth - 1][many], blocks, arguments);
    }

    bool group(GroupArguments& group, bool last) {
        announce(group.first[group.count], last);
        void* arguments[] = {&group, &unpack, &done};
        return start(device.group, group.first[group.count], arguments);
    }

    // Spin until the ticket shows; after some milliseconds ask the stream instead, because a kernel that failed never stores it.
    bool flagged(u32 ticket) {
        for (int spins = 0; *device.flag != ticket; ++spins) {
            if (spins == 1 << 18) return cuda.wait(device.stream) == 0;
            __builtin_ia32_pause();
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        return true;
    }

    // The flag must not be waited for where a launch failed: then the stream itself is.
    bool finish(bool good) {
        if (!waited) return good;
        if (good && waiting() == Waiting::flag && done.flag) {
            return flagged(done.ticket);
        }
        if (good && waiting() == Waiting::write) {
            const u32 ticket = ++device.ticket;
            if (cuda.write(device.stream, reinterpret_cast<Pointer>(device.flag), ticket, 0) == 0) {
                return flagged(ticket);
            }
        }
        return cuda.wait(device.stream) == 0 && good;
    }
};

// What a stream of bytes needs: nests in groups, trees one by one. `parts` are cut so that each has less than `most_words`.
struct Piece {
    const Node* node;
    char* strided;
    char* packed;
    NodeRef owned; // where cutting made a node
};

constexpr std::size_t most_pieces = 64; // a Concat of more parts goes to the tree

inline void cut(const NodeRef& node, char* strided, char* packed, std::vector<Piece>& pieces) {
    if (node->kind == Kind::concat && node->parts.size() <= most_pieces) {
        for (std::size_t i = 0; i < node->parts.size(); ++i) cut(node->parts[i].node, strided + node->parts[i].offset, packed + node->starts[i], pieces);
        return;
    }
    if (node->bytes < most_words) { // in words of one byte at worst
        pieces.push_back({node.get(), strided, packed, node});
        return;
    }
    if (node->kind == Kind::strided) {
        const Bytes half = node->count / 2;
        const auto some = [&](Bytes count) { return strided_node(count, node->step, node->child); };
        cut(half == 1 ? node->child : some(half), strided, packed, pieces);
        cut(node->count - half == 1 ? node->child : some(node->count - half), strided + half * node->step, packed + half * node->child->bytes, pieces);
        return;
    }
    if (node->kind == Kind::dense) {
        const Bytes half = node->bytes / 2 & ~Bytes(15);
        cut(dense_node(half), strided, packed, pieces);
        cut(dense_node(node->bytes - half), strided + half, packed + half, pieces);
        return;
    }
    for (std::size_t i = 0; i < node->parts.size(); ++i) cut(node->parts[i].node, strided + node->parts[i].offset, packed + node->starts[i], pieces);
}

inline const Uploaded* uploaded(Driver& cuda, Device& device, const NodeRef& node, u32 width) {
    auto& kept = device.tables;
    const std::pair<const void*, u32> key{node.get(), width};
    if (auto found = kept.find(key); found != kept.end()) return &found->second;
    if (kept.size() >= 256) {
        if (cuda.wait(device.stream)) return nullptr;
        for (auto& [_, old] : kept) cuda.release(old.memory);
        kept.clear();
    }
    TreeTables tables;
    add_tree(*node, width, tables);
    Uploaded result{node};
    std::string bytes;
    const auto append = [&](int table, const void* data, std::size_t size) {
        bytes.resize((bytes.size() + 15) & ~std::size_t(15));
        result.at[table] = bytes.size();
        bytes.append(static_cast<const char*>(data), size);
    };
    append(0, tables.nodes.data(), tables.nodes.size() * sizeof(TreeNodeArguments));
    append(1, tables.starts.data(), tables.starts.size() * sizeof(u32));
    append(2, tables.offsets.data(), tables.offsets.size() * sizeof(Bytes));
    append(3, tables.children.data(), tables.children.size() * sizeof(u32));
    if (cuda.allocate(&result.memory, bytes.size())) return nullptr;
    if (cuda.copy(result.memory, reinterpret_cast<Pointer>(bytes.data()), bytes.size(), device.stream) || cuda.wait(device.stream)) {
        cuda.release(result.memory);
        return nullptr;
    }
    return &kept.emplace(key, std::move(result)).first->second;
}

inline bool launch_tree(Launch& launch, const Piece& piece, bool last) {
    const u32 width = word_width(*piece.node, piece.strided, piece.packed);
    const Uploaded* tables = uploaded(launch.cuda, launch.device, piece.owned, width);
    if (!tables) return false;
    Pointer tree[4];
    for (int i = 0; i < 4; ++i) tree[i] = tables->memory + tables->at[i];
    u32 words = static_cast<u32>(piece.node->bytes / width);
    const u32 blocks = (words + threads - 1) / threads;
    char *strided = piece.strided, *packed = piece.packed;
    launch.announce(blocks, last);
    void* arguments[] = {&strided, &packed, &words, &launch.unpack, &tree, &launch.done};
    return launch.start(launch.device.tree[log2_of(width)], blocks, arguments);
}

// Move all pieces; both sides are memory that this device reaches. Returns after the last byte has arrived, if it is waited for.
inline bool run(Driver& cuda, Device& device, const std::vector<Piece>& pieces, bool unpack, bool waited = true) {
    const std::lock_guard lock(device.busy);
    Launch launch{cuda, device, unpack, waited};
    bool good = true;
    GroupArguments group;
    const auto flush = [&](bool last) {
        if (group.count == 1) good = good && launch.nest(group.request[0], last);
        else if (group.count) good = good && launch.group(group, last);
        group.count = 0;
    };
    for (std::size_t i = 0; i < pieces.size() && good; ++i) {
        const Piece& piece = pieces[i];
        const bool last = i + 1 == pieces.size();
        if (piece.node->depth < 0 || piece.node->depth > deepest_nest) {
            flush(false);
            good = good && launch_tree(launch, piece, last);
            continue;
        }
        RequestArguments& request = group.request[group.count];
        request = request_of(*piece.node, piece.strided, piece.packed);
        group.first[group.count + 1] = group.first[group.count] + (request.words + threads * 4 - 1) / (threads * 4);
        if (++group.count == group_size || last) flush(last);
    }
    return launch.finish(good);
}

// --- any two places ----------------------------------------------------------------------------------------------------------------------

inline bool grow(Driver& cuda, Scratch& scratch, std::size_t bytes, bool host) {
    std::size_t& room = host ? scratch.host_room : scratch.device_room;
    if (bytes <= room) return true;
    const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(bytes, 1 << 16));
    if (host) {
        if (scratch.host) cuda.release_host(scratch.host);
        scratch.host = nullptr, room = 0;
        if (cuda.allocate_host(&scratch.host, wanted, 3)) return false;
    } else {
        if (scratch.device) cuda.release(scratch.device);
        scratch.device = 0, room = 0;
        if (cuda.allocate(&scratch.device, wanted)) return false;
    }
    room = wanted;
    return true;
}

inline bool run_layout(Driver& cuda, Device& device, const Layout& layout, char* base, char* packed, bool unpack, bool waited = true) {
    char* strided = base + layout.offset;
    if (layout.node->depth >= 0 && layout.node->depth <= deepest_nest && layout.node->bytes < most_words) { // no list of pieces to allocate
        const std::lock_guard lock(device.busy);
        Launch launch{cuda, device, unpack, waited};
        RequestArguments request = request_of(*layout.node, strided, packed);
        return launch.finish(launch.nest(request, true));
    }
    std::vector<Piece> pieces;
    cut(layout.node, strided, packed, pieces);
    return run(cuda, device, pieces, unpack, waited);
}

// Pack or unpack a whole layout where at least one side is on a GPU; false: nothing was done, or not all of it.
inline bool copy(Driver& cuda, const Layout& layout, char* base, char* packed, Place here, Place there, bool unpack) {
    if (!layout.node) return true;
    if (here.where == Where::foreign || there.where == Where::foreign) return false;
    if (here.where != Where::device && there.where != Where::device) return false; // what the driver does not know may be anything
    const auto bytes = static_cast<std::size_t>(layout.bytes());
    if (here.where == Where::device && (there.where == Where::pinned || (there.where == Where::device && there.device == here.device))) {
        Use use(cuda, here.device);
        return use && run_layout(cuda, *use, layout, base, packed, unpack);
    }
    Use use(cuda, here.where == Where::device ? here.device : there.device);
    if (!use) return false;
    Scratch& scratch = use->scratch;
    const std::lock_guard lock(scratch.busy);
    const auto transfer = [&](Pointer to, Pointer from) { return cuda.copy(to, from, bytes, use->stream) == 0 && cuda.wait(use->stream) == 0; };
    const auto end = reinterpret_cast<Pointer>(packed);
    if (here.where == Where::device) { // the packed side is pageable, or on another GPU
        if (!grow(cuda, scratch, bytes, false)) return false;
        char* staged = reinterpret_cast<char*>(scratch.device);
        if (unpack) return transfer(scratch.device, end) && run_layout(cuda, *use, layout, base, staged, true);
        return run_layout(cuda, *use, layout, base, staged, false) && transfer(end, scratch.device);
    }
    if (!grow(cuda, scratch, bytes, true)) return false; // the object is on the host, the packed side on the GPU
    const auto staged = reinterpret_cast<Pointer>(scratch.host);
    if (unpack) {
        if (!transfer(staged, end)) return false;
        mpi::copy<Direction::unpack>(layout, base, scratch.host, 0, layout.bytes());
        return true;
    }
    mpi::copy<Direction::pack>(layout, base, scratch.host, 0, layout.bytes());
    return transfer(end, staged);
}

} // namespace warpwright::mpi::gpu
