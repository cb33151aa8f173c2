// Packing between any two places: by a kernel where one reaches both, through memory of this process where none does, and block by block, by the
// driver's own copies, where the GPU has no memory left for either.
#pragma once
#include "device.hpp"

namespace warpwright::mpi::gpu {

// No memory of a GPU can be had: every call returns false, and the copies block by block are what is left.
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
    if (is_nest(*layout.node)) { // no list of pieces to allocate
        const std::lock_guard lock(device.busy);
        Launch launch{cuda, device, unpack, device.stream, waited};
        RequestArguments request = request_of(*layout.node, strided, packed);
        return launch.finish(launch.nest(request, true));
    }
    std::vector<Piece> pieces;
    cut(layout.node, strided, packed, pieces);
    return run(cuda, device, pieces, unpack, waited);
}

// One copy of the driver for each block: slow, and in need of nothing but the two places.
inline bool copy_blocks(Driver& cuda, const Node& node, char* strided, char* packed, bool unpack, Opaque stream) {
    if (node.kind == Kind::dense) {
        const auto there = reinterpret_cast<Pointer>(strided), here = reinterpret_cast<Pointer>(packed);
        return cuda.copy(unpack ? there : here, unpack ? here : there, static_cast<std::size_t>(node.bytes), stream) == 0;
    }
    if (node.kind == Kind::strided) {
        for (Bytes i = 0; i < node.count; ++i)
            if (!copy_blocks(cuda, *node.child, strided + i * node.step, packed + i * node.child->bytes, unpack, stream)) return false;
        return true;
    }
    for (std::size_t i = 0; i < node.parts.size(); ++i)
        if (!copy_blocks(cuda, *node.parts[i].node, strided + node.parts[i].offset, packed + node.starts[i], unpack, stream)) return false;
    return true;
}

// By kernels: false where the device has no code or no memory for them, or a launch was refused.
inline bool copy_by_kernel(Driver& cuda, const Layout& layout, char* base, char* packed, Place here, Place there, bool unpack) {
    const auto bytes = static_cast<std::size_t>(layout.bytes());
    Use use(cuda, here.where == Where::device ? here.device : there.device);
    if (!use) return false;
    if (here.where == Where::device && (there.where == Where::pinned || (there.where == Where::device && there.device == here.device)))
        return run_layout(cuda, *use, layout, base, packed, unpack);
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

// Pack or unpack a whole layout where at least one side is on a GPU; false: nothing was done, or not all of it.
inline bool copy(Driver& cuda, const Layout& layout, char* base, char* packed, Place here, Place there, bool unpack) {
    if (!layout.node) return true;
    if (here.where == Where::foreign || there.where == Where::foreign) return false;
    if (here.where != Where::device && there.where != Where::device) return false; // what the driver does not know may be anything
    if (copy_by_kernel(cuda, layout, base, packed, here, there, unpack)) return true;
    const Current current(cuda, here.where == Where::device ? here.device : there.device);
    const Opaque stream = reinterpret_cast<Opaque>(1); // CU_STREAM_LEGACY
    const bool good = current && copy_blocks(cuda, *layout.node, base + layout.offset, packed, unpack, stream);
    return current && cuda.wait(stream) == 0 && good;
}

} // namespace warpwright::mpi::gpu
