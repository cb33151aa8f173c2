// The GPU side: the kernels loaded, launches and waiting. Whatever fails answers false, and the caller leaves the work to the MPI library.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "compiler.hpp"
#include "driver.hpp"
#include "kernel_arguments.hpp"
#include "pack_cpu.hpp"

namespace warpwright::mpi::gpu {

// How the end of a kernel is learned: stream (cuStreamSynchronize), flag (its last block stores to host memory), write (a stream memory operation
// behind it stores to host memory). Either store follows all that the kernel has stored.
enum class Waiting { stream, flag, write };
constexpr const char* waiting_names[] = {"stream", "flag", "write"};

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
    std::size_t at[5] = {};
};

struct Device {
    Opaque module = nullptr;
    Opaque nest[5][deepest_nest][2] = {}; // [log2 of the width][depth - 1][1 or 4 words a thread]
    Opaque tree[5] = {}, group = nullptr, links = nullptr;
    Opaque stream = reinterpret_cast<Opaque>(1); // CU_STREAM_LEGACY: ordered with what the program launched on its default stream
    Waiting waiting = Waiting::stream, waiting_many = Waiting::stream; // where few blocks end, and where many do
    Bytes many_words = Bytes(1) << 20; // from here on a thread moves four words: enough blocks for every multiprocessor remain
    volatile u32* flag = nullptr;
    Pointer arrived = 0;
    u32 ticket = 0;
    std::mutex busy; // of the flag and the tables: one launch is awaited at a time
    std::map<std::pair<const void*, u32>, Uploaded> tables; // by node and width, for the layouts used last
    Scratch scratch;
    std::atomic<bool> usable{false};
    bool no_code = false; // the kernels cannot be compiled here: not tried again
    std::chrono::steady_clock::time_point next_trial{};
};

inline void choose_waiting(Driver& cuda, Device& device);

// False where the device has no memory for it now; a later call goes on where this one stopped.
inline bool set_up(Driver& cuda, Device& device, int ordinal) {
    if (!device.module) {
        int major = 0, minor = 0;
        if (cuda.device_attribute(&major, 75, ordinal) || cuda.device_attribute(&minor, 76, ordinal)) return false;
        const std::string code = machine_code(std::to_string(major * 10 + minor));
        device.no_code = code.empty();
        if (device.no_code || cuda.load(&device.module, code.data())) return false;
    }
    const auto find = [&](Opaque& kernel, const std::string& name) { return cuda.function(&kernel, device.module, name.c_str()) == 0; };
    for (int w = 0; w < 5; ++w) {
        const std::string width = std::to_string(1 << w);
        for (int depth = 0; depth < deepest_nest; ++depth)
            for (int many = 0; many < 2; ++many)
                if (!find(device.nest[w][depth][many], "nest_" + width + "_" + std::to_string(depth + 1) + (many ? "_4" : "_1"))) return false;
        if (!find(device.tree[w], "tree_" + width)) return false;
    }
    if (!find(device.group, "group") || !find(device.links, "links") || (!device.arrived && cuda.allocate(&device.arrived, 4)) || cuda.fill(device.arrived, 0, 4)) return false;
    void* flag = nullptr;
    if (cuda.allocate_host(&flag, 64, 3)) return false; // portable, mapped
    device.flag = static_cast<volatile u32*>(flag);
    *device.flag = 0;
    choose_waiting(cuda, device);
    return true;
}

// The device with its kernels loaded and its context current in this thread for the life of this object.
class Use {
public:
    Use(Driver& cuda, int ordinal) : current_(cuda, ordinal) {
        static Device devices[most_devices];
        if (!current_) return; // an ordinal out of range has no context either
        Device& device = devices[ordinal];
        if (!device.usable.load(std::memory_order_acquire)) { // no std::call_once: its thread-local variables are the C++ library's, which may be there twice
            const std::lock_guard lock(device.busy);
            const auto now = std::chrono::steady_clock::now();
            if (!device.usable.load(std::memory_order_relaxed) && !device.no_code && now >= device.next_trial) {
                device.next_trial = now + std::chrono::seconds(1); // memory may have been given back by then
                device.usable.store(set_up(cuda, device, ordinal), std::memory_order_release);
            }
        }
        if (device.usable.load(std::memory_order_relaxed)) device_ = &device;
    }
    explicit operator bool() const { return device_ != nullptr; }
    Device& operator*() const { return *device_; }
    Device* operator->() const { return device_; }

private:
    Current current_;
    Device* device_ = nullptr;
};

// --- launches ----------------------------------------------------------------------------------------------------------------------------

inline u32 log2_of(u32 width) { return static_cast<u32>(std::countr_zero(width)); }

constexpr u32 few_blocks = 256; // from here on the last block's store is later than a stream's operation (measured on an H200)

struct Launch {
    Driver& cuda;
    Device& device;
    int unpack;
    Opaque stream;
    bool waited = true; // false: the work is left on the stream
    Waiting way = Waiting::stream;
    DoneArguments done{};

    void announce(u32 blocks, bool last) {
        done = {};
        way = blocks <= few_blocks ? device.waiting : device.waiting_many;
        if (last && waited && way == Waiting::flag) done = {reinterpret_cast<void*>(device.arrived), const_cast<u32*>(device.flag), ++device.ticket, blocks};
    }

    bool start(Opaque kernel, u32 blocks, void** arguments) {
        return cuda.launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr) == 0;
    }

    bool nest(RequestArguments& request, bool last) {
        const bool many = request.words >= device.many_words;
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

    bool links(LinksArguments& links, bool last) {
        announce(links.first[links.count], last);
        void* arguments[] = {&links, &done};
        return start(device.links, links.first[links.count], arguments);
    }

    // Spin until the ticket shows; after some milliseconds ask the stream instead, because a kernel that failed never stores it.
    bool flagged(u32 ticket) {
        for (int spins = 0; *device.flag != ticket; ++spins) {
            if (spins == 1 << 18) return cuda.wait(stream) == 0;
            __builtin_ia32_pause();
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        return true;
    }

    // The flag must not be waited for where a launch failed: then the stream itself is.
    bool finish(bool good) {
        if (!waited) return good;
        if (good && done.flag) return flagged(done.ticket);
        if (good && way == Waiting::write) {
            const u32 ticket = ++device.ticket;
            if (cuda.write(stream, reinterpret_cast<Pointer>(device.flag), ticket, 0) == 0) return flagged(ticket);
        }
        return cuda.wait(stream) == 0 && good;
    }
};

// WARPWRIGHT_MPI_WAIT (stream, flag or write), or the way that is fastest here: the medians of some packs of 16 KiB, the ways in turns.
inline void choose_waiting(Driver& cuda, Device& device) {
    if (const char* value = std::getenv("WARPWRIGHT_MPI_WAIT")) {
        for (int way = 0; way < 3; ++way)
            if (!std::strcmp(value, waiting_names[way])) device.waiting = device.waiting_many = static_cast<Waiting>(way);
        return;
    }
    constexpr Bytes size = 1 << 14;
    constexpr int rounds = 21;
    Pointer memory = 0;
    if (cuda.allocate(&memory, 3 * size)) return;
    const NodeRef node = strided_node(size / 64, 128, dense_node(64));
    std::vector<double> taken[3];
    char* base = reinterpret_cast<char*>(memory);
    for (int round = 0; round < rounds; ++round) {
        for (int way = 0; way < 3; ++way) {
            device.waiting = static_cast<Waiting>(way);
            const auto start = std::chrono::steady_clock::now();
            Launch launch{cuda, device, 0, device.stream};
            RequestArguments request = request_of(*node, base, base + 2 * size);
            const bool good = launch.finish(launch.nest(request, true));
            const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
            taken[way].push_back(good ? seconds.count() : 1);
        }
    }
    const auto median = [&](Waiting way) {
        auto& all = taken[static_cast<int>(way)];
        std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
        return all[rounds / 2];
    };
    const double stream = median(Waiting::stream), flag = median(Waiting::flag), write = median(Waiting::write);
    device.waiting_many = write < stream ? Waiting::write : Waiting::stream;
    device.waiting = flag < std::min(write, stream) ? Waiting::flag : device.waiting_many;
    cuda.release(memory);
}

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

inline const Uploaded* uploaded(Driver& cuda, Device& device, const NodeRef& node, u32 width, Opaque stream) {
    auto& kept = device.tables;
    const std::pair<const void*, u32> key{node.get(), width};
    if (auto found = kept.find(key); found != kept.end()) return &found->second;
    if (kept.size() >= 256) {
        if (cuda.wait(stream)) return nullptr;
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
    append(4, tables.hints.data(), tables.hints.size() * sizeof(u32));
    if (cuda.allocate(&result.memory, bytes.size())) return nullptr;
    if (cuda.copy(result.memory, reinterpret_cast<Pointer>(bytes.data()), bytes.size(), stream) || cuda.wait(stream)) {
        cuda.release(result.memory);
        return nullptr;
    }
    return &kept.emplace(key, std::move(result)).first->second;
}

inline bool launch_tree(Launch& launch, const Piece& piece, bool last) {
    const u32 width = word_width(*piece.node, piece.strided, piece.packed);
    const Uploaded* tables = uploaded(launch.cuda, launch.device, piece.owned, width, launch.stream);
    if (!tables) return false;
    Pointer tree[5];
    for (int i = 0; i < 5; ++i) tree[i] = tables->memory + tables->at[i];
    u32 words = static_cast<u32>(piece.node->bytes / width);
    const u32 blocks = (words + threads - 1) / threads;
    char *strided = piece.strided, *packed = piece.packed;
    launch.announce(blocks, last);
    void* arguments[] = {&strided, &packed, &words, &launch.unpack, &tree, &launch.done};
    return launch.start(launch.device.tree[log2_of(width)], blocks, arguments);
}

// The launches that move all pieces, with what their kernels take: nests in groups, in the order of the pieces. Divisors cost 20 ns each.
struct Launches {
    struct One {
        GroupArguments group;
        const Piece* tree = nullptr; // in place of a group
    };
    std::vector<One> all;

    explicit Launches(const std::vector<Piece>& pieces) {
        bool open = false; // the last group has room
        for (const Piece& piece : pieces) {
            if (piece.node->depth < 0 || piece.node->depth > deepest_nest) {
                all.emplace_back().tree = &piece;
                open = false;
                continue;
            }
            if (!open) all.emplace_back();
            GroupArguments& group = all.back().group;
            RequestArguments& request = group.request[group.count];
            request = request_of(*piece.node, piece.strided, piece.packed);
            constexpr u32 each = threads * group_words;
            group.first[group.count + 1] = group.first[group.count] + (request.words + each - 1) / each;
            open = ++group.count < group_size;
        }
    }
};

// Move all pieces; both sides are memory that this device reaches. Returns after the last byte has arrived, if it is waited for. Without a stream
// it is the device's own.
inline bool run(Driver& cuda, Device& device, Launches& launches, bool unpack, bool waited = true, Opaque stream = nullptr) {
    const std::lock_guard lock(device.busy);
    Launch launch{cuda, device, unpack, stream ? stream : device.stream, waited};
    bool good = true;
    for (Launches::One& one : launches.all) {
        if (!good) break;
        const bool last = &one == &launches.all.back();
        if (one.tree) good = launch_tree(launch, *one.tree, last);
        else good = one.group.count == 1 ? launch.nest(one.group.request[0], last) : launch.group(one.group, last);
    }
    return launch.finish(good);
}

inline bool run(Driver& cuda, Device& device, const std::vector<Piece>& pieces, bool unpack, bool waited = true) {
    Launches launches(pieces);
    return run(cuda, device, launches, unpack, waited);
}

// Copy strided objects into others, which may be another process's or another device's memory that this one reaches; returns when all has arrived.
inline bool run_links(Driver& cuda, Device& device, const std::vector<LinkArguments>& all, Opaque stream) {
    const std::lock_guard lock(device.busy);
    Launch launch{cuda, device, 0, stream ? stream : device.stream};
    bool good = true;
    LinksArguments links;
    for (std::size_t i = 0; i < all.size() && good; ++i) {
        constexpr u32 each = threads * group_words;
        links.link[links.count] = all[i];
        links.first[links.count + 1] = links.first[links.count] + (all[i].words + each - 1) / each;
        const bool last = i + 1 == all.size();
        if (++links.count < most_links && !last) continue;
        good = launch.links(links, last);
        links.count = 0;
    }
    return launch.finish(good);
}

} // namespace warpwright::mpi::gpu
