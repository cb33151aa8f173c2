// The IR of a datatype's bytes, always in canonical form: three nodes, whose typemap order is part of the meaning.
//
//     Dense(n)                     n consecutive bytes
//     Strided(count, step, child)  the child `count` times, `step` bytes apart (negative and zero steps too)
//     Concat((offset, child) ...)  one child after the other in the packed stream
//
// The constructors canonicalise: empty parts are dropped, a count of 1 disappears but keeps its offset, what is adjacent is merged, nests are
// flattened, equal children at a constant distance become Strided, nested Concats are spliced. Nothing is ever sorted: two layouts are equal
// only if they pack the same bytes in the same order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace warpwright::mpi {

using Bytes = std::int64_t;

struct Node;
using NodeRef = std::shared_ptr<const Node>;

struct Part {
    Bytes offset;
    NodeRef node;
};

enum class Kind : std::uint8_t { dense, strided, concat };

struct Node {
    Kind kind;
    int depth;                 // number of Strided above one Dense; -1 for anything with a Concat inside
    Bytes bytes;               // in the packed stream
    Bytes count = 0, step = 0; // of a Strided
    Bytes low = 0, high = 0;   // the bytes that it touches, relative to its start: [low, high)
    Bytes gathered = 0;        // every length, step and offset inside, or-ed: a power of two divides all of them if it divides this
    std::uint64_t hash = 0;
    NodeRef child{};           // of a Strided
    std::vector<Part> parts{}; // of a Concat
    std::vector<Bytes> starts{}; // of a Concat: where each part begins in the packed stream
    Bytes uniform = 0;         // of a Concat: the length of its parts when all are Dense of one length, else 0
    std::vector<Bytes> at{}, lengths{}; // of a Concat of short parts: its runs once more, without pointers between them; see `spread`
    Bytes unit = 0;                     // the length of all that lies `at`; 0: `lengths` says
};

struct Layout {
    Bytes offset = 0;
    NodeRef node; // null: no bytes
    Bytes bytes() const { return node ? node->bytes : 0; }
};

// A size or an address that does not fit 64 bits: such a type is left to the library.
struct Overflow : std::overflow_error {
    Overflow() : std::overflow_error("a layout of more than 2^63 bytes") {}
};

inline Bytes times(Bytes a, Bytes b) {
    Bytes result;
    if (__builtin_mul_overflow(a, b, &result)) throw Overflow();
    return result;
}

inline Bytes plus(Bytes a, Bytes b) {
    Bytes result;
    if (__builtin_add_overflow(a, b, &result)) throw Overflow();
    return result;
}

inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
    seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 12) + (seed >> 4);
    return seed * 0xff51afd7ed558ccdULL;
}

inline bool same(const NodeRef& a, const NodeRef& b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->bytes != b->bytes || a->hash != b->hash) return false;
    if (a->kind == Kind::dense) return true;
    if (a->kind == Kind::strided) return a->count == b->count && a->step == b->step && same(a->child, b->child);
    if (a->parts.size() != b->parts.size()) return false;
    for (std::size_t i = 0; i < a->parts.size(); ++i)
        if (a->parts[i].offset != b->parts[i].offset || !same(a->parts[i].node, b->parts[i].node)) return false;
    return true;
}

inline NodeRef dense_node(Bytes bytes) {
    auto node = std::make_shared<Node>(Node{Kind::dense, 0, bytes});
    node->high = node->gathered = bytes;
    node->hash = mixed(1, static_cast<std::uint64_t>(bytes));
    return node;
}

inline NodeRef strided_node(Bytes count, Bytes step, NodeRef child) {
    auto node = std::make_shared<Node>(Node{Kind::strided, child->depth < 0 ? -1 : child->depth + 1, times(count, child->bytes), count, step});
    const Bytes last = times(count - 1, step);
    node->low = plus(child->low, std::min<Bytes>(0, last));
    node->high = plus(child->high, std::max<Bytes>(0, last));
    node->gathered = step | child->gathered;
    node->hash = mixed(mixed(mixed(2, static_cast<std::uint64_t>(count)), static_cast<std::uint64_t>(step)), child->hash);
    node->child = std::move(child);
    return node;
}

inline Bytes shortest_run(const Node& node) {
    if (node.kind == Kind::dense) return node.bytes;
    if (node.kind == Kind::strided) return shortest_run(*node.child);
    Bytes shortest = std::numeric_limits<Bytes>::max();
    for (const Part& part : node.parts) shortest = std::min(shortest, shortest_run(*part.node));
    return shortest;
}

// Every run of a node, in order.
template <class Run>
void each_run(const Node& node, Bytes offset, Run run) {
    if (node.kind == Kind::dense) return run(offset, node.bytes);
    if (node.kind == Kind::strided) {
        for (Bytes i = 0; i < node.count; ++i) each_run(*node.child, offset + i * node.step, run);
        return;
    }
    for (const Part& part : node.parts) each_run(*part.node, offset + part.offset, run);
}

// For the CPU: a Concat whose parts are short as the places of its runs; of one length where each is a multiple of the shortest and few are. What had
// been merged comes apart again, because a branch on each part costs more than the copies: 16,384 doubles at random places took 44 us, and 7 apart.
inline void spread(Node& node) {
    constexpr Bytes longest = 4; // units or runs for each part
    const Bytes unit = shortest_run(node), most = longest * static_cast<Bytes>(node.parts.size());
    if (node.bytes / unit > 64 * most) return;
    bool whole = unit <= 64 && node.bytes / unit <= most;
    Bytes runs = 0;
    each_run(node, 0, [&](Bytes, Bytes bytes) { whole = whole && bytes % unit == 0, ++runs; });
    if (!whole && runs > most) return;
    if (whole) node.unit = unit;
    each_run(node, 0, [&](Bytes offset, Bytes bytes) {
        if (!whole) node.lengths.push_back(bytes);
        for (Bytes first = 0; first < (whole ? bytes : 1); first += whole ? unit : 1) node.at.push_back(offset + first);
    });
}

inline NodeRef concat_node(std::vector<Part> parts) {
    auto node = std::make_shared<Node>(Node{Kind::concat, -1, 0});
    node->low = std::numeric_limits<Bytes>::max(), node->high = std::numeric_limits<Bytes>::min();
    node->uniform = parts[0].node->kind == Kind::dense ? parts[0].node->bytes : 0;
    node->hash = 3;
    node->starts.reserve(parts.size());
    for (const Part& part : parts) {
        node->starts.push_back(node->bytes);
        node->bytes = plus(node->bytes, part.node->bytes);
        node->low = std::min(node->low, plus(part.offset, part.node->low));
        node->high = std::max(node->high, plus(part.offset, part.node->high));
        node->gathered |= part.offset | part.node->gathered;
        node->hash = mixed(mixed(node->hash, static_cast<std::uint64_t>(part.offset)), part.node->hash);
        if (part.node->kind != Kind::dense || part.node->bytes != node->uniform) node->uniform = 0;
    }
    node->parts = std::move(parts);
    spread(*node);
    return node;
}

Layout concat(const std::vector<Layout>& children);

inline Layout dense(Bytes bytes) { return bytes ? Layout{0, dense_node(bytes)} : Layout{}; }

// The most parts that a loop over a Concat is written out to, so that parts of one iteration merge with those of the next.
constexpr std::size_t written_out = 64;

inline Layout strided(Bytes count, Bytes step, const Layout& child) {
    if (count <= 0 || !child.node) return {};
    if (count == 1) return child;
    const Node& inner = *child.node;
    if (inner.kind == Kind::dense && step == inner.bytes) return {child.offset, dense_node(times(count, inner.bytes))};
    if (inner.kind == Kind::strided && step == times(inner.count, inner.step)) {
        return {child.offset, strided_node(times(count, inner.count), inner.step, inner.child)};
    }
    if (inner.kind == Kind::concat && count <= static_cast<Bytes>(written_out / inner.parts.size())) {
        std::vector<Layout> copies;
        for (Bytes i = 0; i < count; ++i) copies.push_back({plus(child.offset, times(i, step)), child.node});
        return concat(copies);
    }
    return {child.offset, strided_node(count, step, child.node)};
}

// Merge `next` into the last part, when the two are one node at the last part's place.
inline bool merged(Part& last, const Part& next) {
    const Node &a = *last.node, &b = *next.node;
    const Bytes distance = next.offset - last.offset;
    if (a.kind == Kind::dense && b.kind == Kind::dense && distance == a.bytes) {
        last.node = dense_node(a.bytes + b.bytes);
        return true;
    }
    if (a.kind == Kind::strided && distance == times(a.count, a.step)) {
        if (same(a.child, next.node)) {
            last.node = strided_node(a.count + 1, a.step, a.child);
            return true;
        }
        if (b.kind == Kind::strided && a.step == b.step && same(a.child, b.child)) {
            last.node = strided_node(a.count + b.count, a.step, a.child);
            return true;
        }
    }
    if (b.kind == Kind::strided && distance == b.step && same(b.child, last.node)) {
        last.node = strided_node(b.count + 1, b.step, b.child);
        return true;
    }
    return false;
}

inline bool merge_neighbours(std::vector<Part>& parts) {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        if (merged(parts[kept], parts[i])) continue;
        if (++kept != i) parts[kept] = std::move(parts[i]);
    }
    const bool changed = kept + 1 < parts.size();
    parts.resize(kept + 1);
    return changed;
}

// Three or more equal children at a constant distance, or all when there are two, become one Strided.
inline bool merge_series(std::vector<Part>& parts) {
    std::vector<Part> result;
    bool changed = false;
    for (std::size_t i = 0; i < parts.size();) {
        std::size_t end = i + 1;
        if (end < parts.size() && same(parts[i].node, parts[end].node)) {
            const Bytes step = parts[end].offset - parts[i].offset;
            while (end < parts.size() && parts[end].offset - parts[end - 1].offset == step && same(parts[end].node, parts[i].node)) ++end;
            if (end - i >= 3 || parts.size() == 2) {
                const Layout series = strided(static_cast<Bytes>(end - i), step, {0, parts[i].node});
                if (series.node->kind != Kind::concat) {
                    result.push_back({parts[i].offset + series.offset, series.node});
                    i = end;
                    changed = true;
                    continue;
                }
            }
        }
        result.push_back(parts[i++]);
    }
    parts = std::move(result);
    return changed;
}

inline Layout concat(const std::vector<Layout>& children) {
    std::vector<Part> parts;
    parts.reserve(children.size());
    for (const Layout& child : children) {
        if (!child.node) continue;
        if (child.node->kind != Kind::concat) {
            parts.push_back({child.offset, child.node});
            continue;
        }
        for (const Part& part : child.node->parts) parts.push_back({plus(child.offset, part.offset), part.node});
    }
    if (parts.empty()) return {};
    while (parts.size() > 1) {
        const bool neighbours = merge_neighbours(parts); // both, each time: a series may make new neighbours
        const bool series = parts.size() > 1 && merge_series(parts);
        if (!neighbours && !series) break;
    }
    if (parts.size() == 1) return {parts[0].offset, parts[0].node};
    const Bytes origin = parts[0].offset; // a Concat begins at its first part: equal layouts then look equal wherever they lie
    for (Part& part : parts) part.offset -= origin;
    return {origin, concat_node(std::move(parts))};
}

// The first `bytes` of the packed stream: what a short message carries.
inline Layout prefix(const Layout& layout, Bytes bytes) {
    if (!layout.node || bytes <= 0) return {};
    const Node& node = *layout.node;
    if (bytes >= node.bytes) return layout;
    if (node.kind == Kind::dense) return {layout.offset, dense_node(bytes)};
    std::vector<Layout> parts;
    if (node.kind == Kind::strided) {
        const Bytes whole = bytes / node.child->bytes;
        parts.push_back(strided(whole, node.step, {layout.offset, node.child}));
        parts.push_back(prefix({layout.offset + whole * node.step, node.child}, bytes - whole * node.child->bytes));
        return concat(parts);
    }
    for (std::size_t i = 0; i < node.parts.size() && node.starts[i] < bytes; ++i)
        parts.push_back(prefix({layout.offset + node.parts[i].offset, node.parts[i].node}, bytes - node.starts[i]));
    return concat(parts);
}

// `count` objects of a datatype, `extent` bytes apart.
inline Layout repeated(const Layout& one, Bytes count, Bytes extent) { return strided(count, extent, one); }

inline void describe(const Node& node, std::string& text) {
    if (node.kind == Kind::dense) {
        text.append("Dense(").append(std::to_string(node.bytes)).append(")");
        return;
    }
    if (node.kind == Kind::strided) {
        text.append("Strided(").append(std::to_string(node.count)).append(", ").append(std::to_string(node.step)).append(", ");
        describe(*node.child, text);
        text += ")";
        return;
    }
    text += "Concat(";
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
        if (i) text += ", ";
        text.append("(").append(std::to_string(node.parts[i].offset)).append(", ");
        describe(*node.parts[i].node, text);
        text += ")";
    }
    text += ")";
}

inline std::string describe(const Layout& layout) {
    if (!layout.node) return "Empty";
    std::string text = layout.offset ? std::to_string(layout.offset) + " + " : "";
    describe(*layout.node, text);
    return text;
}

} // namespace warpwright::mpi
