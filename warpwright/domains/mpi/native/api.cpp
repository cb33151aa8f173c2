// The core's C interface, as Python calls it (../core.py). A null pointer stands for a layout that does not fit 64 bits.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "anywhere.hpp"
#include "layout.hpp"
#include "pack_cpu.hpp"
#include "partition.hpp"

#define WARPWRIGHT_API extern "C" __attribute__((visibility("default")))

using warpwright::mpi::Bytes;
using warpwright::mpi::Direction;
using warpwright::mpi::Layout;
using warpwright::mpi::Node;

namespace {

template <class Make>
Layout* owned(Make make) {
    try {
        return new Layout(make());
    } catch (const warpwright::mpi::Overflow&) {
        return nullptr;
    }
}

struct Runs {
    Bytes* offsets;
    Bytes* lengths;
    Bytes room, count;
    void add(Bytes offset, Bytes bytes) {
        if (count < room) offsets[count] = offset, lengths[count] = bytes;
        ++count;
    }
    void walk(const Node& node, Bytes offset) {
        if (node.kind == warpwright::mpi::Kind::dense) return add(offset, node.bytes);
        if (node.kind == warpwright::mpi::Kind::strided) {
            for (Bytes i = 0; i < node.count; ++i) walk(*node.child, offset + i * node.step);
            return;
        }
        for (const auto& part : node.parts) walk(*part.node, offset + part.offset);
    }
};

} // namespace

WARPWRIGHT_API Layout* warpwright_dense(Bytes bytes) {
    return owned([&] { return warpwright::mpi::dense(bytes); });
}

WARPWRIGHT_API Layout* warpwright_strided(Bytes count, Bytes step, const Layout* child) {
    return owned([&] { return warpwright::mpi::strided(count, step, *child); });
}

WARPWRIGHT_API Layout* warpwright_concat(Bytes count, const Bytes* offsets, const Layout* const* children) {
    return owned([&] {
        std::vector<Layout> parts;
        for (Bytes i = 0; i < count; ++i) parts.push_back({warpwright::mpi::plus(children[i]->offset, offsets[i]), children[i]->node});
        return warpwright::mpi::concat(parts);
    });
}

WARPWRIGHT_API void warpwright_free(Layout* layout) { delete layout; }

WARPWRIGHT_API Bytes warpwright_bytes(const Layout* layout) { return layout->bytes(); }

WARPWRIGHT_API void warpwright_span(const Layout* layout, Bytes* low, Bytes* high) {
    *low = layout->node ? layout->offset + layout->node->low : 0;
    *high = layout->node ? layout->offset + layout->node->high : 0;
}

WARPWRIGHT_API int warpwright_equal(const Layout* a, const Layout* b) {
    if (!a->node || !b->node) return !a->node && !b->node;
    return a->offset == b->offset && warpwright::mpi::same(a->node, b->node);
}

// The text's length; it is written as far as there is room.
WARPWRIGHT_API std::size_t warpwright_describe(const Layout* layout, char* text, std::size_t room) {
    const std::string described = warpwright::mpi::describe(*layout);
    if (room) {
        const std::size_t fits = std::min(room - 1, described.size());
        std::memcpy(text, described.data(), fits);
        text[fits] = 0;
    }
    return described.size();
}

// The number of runs, in typemap order; the first `room` are written.
WARPWRIGHT_API Bytes warpwright_runs(const Layout* layout, Bytes* offsets, Bytes* lengths, Bytes room) {
    Runs runs{offsets, lengths, room, 0};
    if (layout->node) runs.walk(*layout->node, layout->offset);
    return runs.count;
}

WARPWRIGHT_API void warpwright_copy(const Layout* layout, void* base, void* packed, Bytes from, Bytes to, int unpack) {
    if (unpack) warpwright::mpi::copy<Direction::unpack>(*layout, base, packed, from, to);
    else warpwright::mpi::copy<Direction::pack>(*layout, base, packed, from, to);
}

// Pack or unpack where either side may be on a GPU; 0 on success, 1 where CUDA is not loaded or refused.
WARPWRIGHT_API int warpwright_copy_anywhere(const Layout* layout, void* base, void* packed, int unpack) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    const auto here = gpu::place_of(*cuda, layout->node ? static_cast<char*>(base) + layout->offset : base), there = gpu::place_of(*cuda, packed);
    return !gpu::copy(*cuda, *layout, static_cast<char*>(base), static_cast<char*>(packed), here, there, unpack);
}

namespace {

// Many objects whose packed bytes lie at places of their own, moved again and again.
struct Group {
    struct Member {
        Layout layout;
        char *base, *packed;
    };
    int device; // -1: all on the host
    std::vector<Member> members;
    std::vector<warpwright::mpi::gpu::Piece> pieces;
    warpwright::mpi::gpu::Launches launches;

    Group(Bytes count, const Layout* const* layouts, void* const* bases, void* const* packed, int device)
        : device(device), members(members_of(count, layouts, bases, packed)), pieces(pieces_of(members, device)), launches(pieces) {}
    Group(const Group&) = delete; // the launches point into the pieces

    bool is(Bytes count, const Layout* const* layouts, void* const* bases, void* const* packed) const {
        if (static_cast<std::size_t>(count) != members.size()) return false;
        for (std::size_t i = 0; i < members.size(); ++i) {
            const Member& member = members[i];
            if (member.layout.node != layouts[i]->node || member.layout.offset != layouts[i]->offset) return false;
            if (member.base != bases[i] || member.packed != packed[i]) return false;
        }
        return true;
    }

private:
    static std::vector<Member> members_of(Bytes count, const Layout* const* layouts, void* const* bases, void* const* packed) {
        std::vector<Member> members;
        members.reserve(static_cast<std::size_t>(count));
        for (Bytes i = 0; i < count; ++i) members.push_back({*layouts[i], static_cast<char*>(bases[i]), static_cast<char*>(packed[i])});
        return members;
    }
    static std::vector<warpwright::mpi::gpu::Piece> pieces_of(const std::vector<Member>& members, int device) {
        std::vector<warpwright::mpi::gpu::Piece> pieces;
        for (const auto& [layout, base, packed] : members)
            if (device >= 0 && layout.node) warpwright::mpi::gpu::cut(layout.node, base + layout.offset, packed, pieces);
        return pieces;
    }
};

// The device that all of these objects lie on and whose kernels reach their packed bytes: -1 where there are only empty ones, -2 where there is none.
int device_of(warpwright::mpi::gpu::Driver& cuda, Bytes count, const Layout* const* layouts, void* const* bases, void* const* packed) {
    using namespace warpwright::mpi;
    gpu::Places places(cuda);
    int device = -1;
    for (Bytes i = 0; i < count; ++i) {
        if (!layouts[i]->node) continue;
        const auto here = places.of(static_cast<char*>(bases[i]) + layouts[i]->offset), there = places.of(packed[i]);
        if (here.where != gpu::Where::device || there.where == gpu::Where::pageable || there.where == gpu::Where::foreign) return -2;
        if (device >= 0 && device != here.device) return -2;
        if (there.where == gpu::Where::device && there.device != here.device) return -2;
        device = here.device;
    }
    return device;
}

} // namespace

// Many layouts on one GPU in as few launches as their number allows, awaited once; 0 on success. A thread's last group is
// kept: programs repeat themselves.
WARPWRIGHT_API int warpwright_copy_group(Bytes count, const Layout* const* layouts, void* const* bases, void* const* packed, int unpack) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    const int device = device_of(*cuda, count, layouts, bases, packed); // asked each time: memory may have been freed since
    if (device < 0) return device == -2;
    thread_local std::unique_ptr<Group> kept;
    if (!kept || kept->device != device || !kept->is(count, layouts, bases, packed)) kept = std::make_unique<Group>(count, layouts, bases, packed, device);
    gpu::Use use(*cuda, device);
    return !use || !gpu::run(*cuda, *use, kept->launches, unpack);
}

// Contiguous memory of the host: pinned for a device, ordinary for -1. Null where there is none.
WARPWRIGHT_API void* warpwright_allocate(std::size_t bytes, int device) {
    using namespace warpwright::mpi;
    if (device < 0) return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return nullptr;
    const gpu::Current current(*cuda, device);
    void* memory = nullptr;
    return current && !cuda->allocate_host(&memory, bytes, 3) ? memory : nullptr;
}

WARPWRIGHT_API void warpwright_release(void* memory, int device) {
    using namespace warpwright::mpi;
    if (device < 0) return std::free(memory);
    const gpu::Current current(*gpu::driver(), device);
    if (current) gpu::driver()->release_host(memory);
}

// Memory of a device that another process may open by `handle` (64 bytes); null where there is none, or IPC is refused. It is cleared.
WARPWRIGHT_API void* warpwright_share(std::size_t bytes, int device, void* handle) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return nullptr;
    const gpu::Current current(*cuda, device);
    constexpr std::size_t whole = 1 << 21; // a handle opens whole blocks of this size: nothing else is to lie in them
    const std::size_t room = (bytes + whole - 1) / whole * whole;
    gpu::Pointer memory = 0;
    gpu::IpcHandle exported;
    if (!current || cuda->allocate(&memory, room)) return nullptr;
    if (cuda->fill(memory, 0, room) || cuda->export_memory(&exported, memory)) {
        cuda->release(memory);
        return nullptr;
    }
    std::memcpy(handle, &exported, sizeof exported);
    return reinterpret_cast<void*>(memory);
}

// Another process's memory as a device of this one reaches it, or null.
WARPWRIGHT_API void* warpwright_open_shared(const void* handle, int device) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return nullptr;
    const gpu::Current current(*cuda, device);
    gpu::IpcHandle exported;
    std::memcpy(&exported, handle, sizeof exported);
    gpu::Pointer memory = 0;
    return current && !cuda->open_memory(&memory, exported, 1) ? reinterpret_cast<void*>(memory) : nullptr; // 1: with peer access
}

// Give back what `warpwright_share` made, or, where `opened`, what `warpwright_open_shared` did.
WARPWRIGHT_API void warpwright_unshare(void* memory, int device, int opened) {
    using namespace warpwright::mpi;
    gpu::Driver& cuda = *gpu::driver();
    const gpu::Current current(cuda, device);
    const auto address = reinterpret_cast<gpu::Pointer>(memory);
    if (current) opened ? cuda.close_memory(address) : cuda.release(address);
}

WARPWRIGHT_API Group* warpwright_group(Bytes count, const Layout* const* layouts, void* const* bases, void* const* packed, int device) {
    return new Group(count, layouts, bases, packed, device);
}

WARPWRIGHT_API void warpwright_group_free(Group* group) { delete group; }

// Pack or unpack all; on a GPU on `stream`, in as few launches as their number allows. 0 on success.
WARPWRIGHT_API int warpwright_group_run(Group* group, int unpack, void* stream) {
    using namespace warpwright::mpi;
    if (group->device < 0) {
        for (const auto& [layout, base, packed] : group->members) {
            if (unpack) copy<Direction::unpack>(layout, base, packed, 0, layout.bytes());
            else copy<Direction::pack>(layout, base, packed, 0, layout.bytes());
        }
        return 0;
    }
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    gpu::Places places(*cuda);
    for (const auto& [layout, base, packed] : group->members) { // the arrays may have gone since
        if (!layout.node) continue;
        const gpu::Place place = places.of(base + layout.offset);
        if (place.where != gpu::Where::device || place.device != group->device) return 1;
    }
    gpu::Use use(*cuda, group->device);
    return !use || !gpu::run(*cuda, *use, group->launches, unpack, true, stream);
}

namespace {

// Strided objects that are copied into others, without a packed stream in between, again and again.
struct Links {
    int device;
    std::vector<const char*> sources;
    std::vector<warpwright::mpi::LinkArguments> all;
};

} // namespace

// Null where one of the pairs differs in bytes, or is more than a nest on either side.
WARPWRIGHT_API Links* warpwright_links(Bytes count, const Layout* const* from, char* const* bases, const Layout* const* to, char* const* targets, int device) {
    using namespace warpwright::mpi;
    auto links = std::make_unique<Links>(Links{device, {}, {}});
    for (Bytes i = 0; i < count; ++i) {
        if (from[i]->bytes() != to[i]->bytes()) return nullptr;
        if (!from[i]->node) continue;
        if (!is_nest(*from[i]->node) || !is_nest(*to[i]->node)) return nullptr;
        links->sources.push_back(bases[i] + from[i]->offset);
        links->all.push_back(link_of(*from[i]->node, bases[i] + from[i]->offset, *to[i]->node, targets[i] + to[i]->offset));
    }
    return links.release();
}

WARPWRIGHT_API void warpwright_links_free(Links* links) { delete links; }

// Copy all on `stream`; 0 on success, when all has arrived.
WARPWRIGHT_API int warpwright_links_run(const Links* links, void* stream) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    gpu::Places places(*cuda);
    for (const char* source : links->sources) { // the arrays may have gone since
        const gpu::Place place = places.of(source);
        if (place.where != gpu::Where::device || place.device != links->device) return 1;
    }
    gpu::Use use(*cuda, links->device);
    return !use || !gpu::run_links(*cuda, *use, links->all, stream);
}

// The handle (64 bytes) by which another process opens the allocation that an address lies in, and where in it; 1 where it has none.
WARPWRIGHT_API int warpwright_export(const void* address, int device, void* handle, std::int64_t* offset) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    const gpu::Said said = gpu::said_of(*cuda, address, true);
    const gpu::Current current(*cuda, device);
    gpu::IpcHandle exported;
    if (said.code || !said.start || !current || cuda->export_memory(&exported, said.start)) return 1;
    std::memcpy(handle, &exported, sizeof exported);
    *offset = static_cast<std::int64_t>(reinterpret_cast<gpu::Pointer>(address) - said.start);
    return 0;
}

// Wait for all work on a stream of a device (0: the legacy default one); 0 on success.
WARPWRIGHT_API int warpwright_wait(int device, void* stream) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    const gpu::Use use(*cuda, device);
    return !use || cuda->wait(stream ? stream : use->stream) != 0;
}

// Launch a pack or unpack between memory of one GPU (or pinned memory) on its stream and return at once; 0 on success.
WARPWRIGHT_API int warpwright_enqueue(const Layout* layout, void* base, void* packed, int unpack) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    if (!layout->node) return 0;
    const auto here = gpu::place_of(*cuda, static_cast<char*>(base) + layout->offset), there = gpu::place_of(*cuda, packed);
    const bool reached = there.where == gpu::Where::pinned || (there.where == gpu::Where::device && there.device == here.device);
    if (here.where != gpu::Where::device || !reached) return 1;
    gpu::Use use(*cuda, here.device);
    return !use || !gpu::run_layout(*cuda, *use, *layout, static_cast<char*>(base), static_cast<char*>(packed), unpack, false);
}

// What the driver says of an address, for diagnosis: where[0..6] = place (gpu::Where), code, memory type, managed, device, context, device address.
// Returns 1 where CUDA is not loaded.
WARPWRIGHT_API int warpwright_place(const void* pointer, std::int64_t* where) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda) return 1;
    const gpu::Said said = gpu::said_of(*cuda, pointer);
    const std::int64_t all[] = {static_cast<int>(gpu::place_of(*cuda, pointer).where), said.code, said.kind, said.managed, said.device,
                                reinterpret_cast<std::int64_t>(said.context), static_cast<std::int64_t>(said.on_device)};
    std::copy(std::begin(all), std::end(all), where);
    return 0;
}

// How far a device's set-up gets, step by step, for diagnosis: 0 no driver, 1 no context of the device, 2 no code of the kernels, 3 ready.
WARPWRIGHT_API int warpwright_ready(int device) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda) return 0;
    const gpu::Current current(*cuda, device);
    if (!current) return 1;
    return gpu::Use(*cuda, device) ? 3 : 2;
}

// For measurements: how the end of a kernel is learned (0 stream, 1 flag, 2 write, -1 what is fastest), on which stream, 1 being the legacy default one,
// and from how many words on a thread moves four.
WARPWRIGHT_API int warpwright_configure(int device, int how, void* stream, Bytes many_words) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return 1;
    gpu::Use use(*cuda, device);
    if (!use) return 1;
    use->stream = stream;
    use->many_words = many_words;
    if (how < 0) gpu::choose_waiting(*cuda, *use);
    else use->waiting = use->waiting_many = static_cast<gpu::Waiting>(how);
    return 0;
}

// How the end of a kernel is learned on a device (as above): of one with few blocks, and 10 times that of one with many; -1 where it is of no use.
WARPWRIGHT_API int warpwright_waiting(int device) {
    using namespace warpwright::mpi;
    gpu::Driver* cuda = gpu::driver();
    if (!cuda || gpu::avoided()) return -1;
    gpu::Use use(*cuda, device);
    return use ? static_cast<int>(use->waiting) + 10 * static_cast<int>(use->waiting_many) : -1;
}

// The host of each vertex, given where they lie now and the edges between them; returns what passes between hosts then.
WARPWRIGHT_API std::int64_t warpwright_partition(Bytes vertices, const int* hosts, Bytes count, const int* from, const int* to, const Bytes* weights, int* placed) {
    std::vector<warpwright::mpi::Edge> edges;
    for (Bytes i = 0; i < count; ++i) edges.push_back({from[i], to[i], weights[i]});
    const warpwright::mpi::Partition partition({hosts, hosts + vertices}, edges);
    const std::vector<int> solved = partition.solved();
    std::copy(solved.begin(), solved.end(), placed);
    return partition.cut(solved);
}
