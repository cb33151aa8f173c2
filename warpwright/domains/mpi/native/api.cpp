// The core's C interface, as Python calls it (../core.py). A null pointer stands for a layout that does not fit 64 bits.
#include <cstring>

#include "layout.hpp"
#include "pack_cpu.hpp"

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
