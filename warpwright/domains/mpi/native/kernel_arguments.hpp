// What kernels.cu takes, as the host fills it in: words, widths, divisors.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "layout.hpp"

namespace warpwright::mpi {

using u32 = std::uint32_t;

constexpr int deepest_nest = 4;
constexpr Bytes most_words = Bytes(1) << 30; // of one launch: the divisors are exact below 2^31
constexpr u32 threads = 256;

// x / by == (x * factor) >> shift for all x below 2^31: factor is 2^shift / by rounded up, and its error times x stays below 2^shift.
struct Divisor {
    u32 by = 1, factor = 1u << 31, shift = 31, unused = 0;
    Divisor() = default;
    explicit Divisor(Bytes value) : by(static_cast<u32>(value)) {
        shift = 31 + static_cast<u32>(std::bit_width(by - 1));
        factor = static_cast<u32>(((std::uint64_t(1) << shift) + by - 1) / by);
    }
};

struct NestArguments {
    Bytes step[deepest_nest] = {};
    Divisor count[deepest_nest];
    Divisor block;
};

struct RequestArguments {
    char* strided;
    char* packed;
    u32 words, width, depth, unused = 0;
    NestArguments nest;
};

constexpr int group_size = 26; // as GROUP and GROUP_WORDS of kernels.cu
constexpr u32 group_words = 6;

struct GroupArguments {
    u32 count = 0;
    u32 first[group_size + 1] = {};
    u32 unused[4 - (group_size + 2) % 4] = {};
    RequestArguments request[group_size];
};
static_assert(sizeof(RequestArguments) == 144 && sizeof(GroupArguments) <= 4096 - 64);

struct DoneArguments {
    void* arrived = nullptr;
    void* flag = nullptr;
    u32 ticket = 0, blocks = 0;
};

struct TreeNodeArguments {
    u32 kind, first, hint, chunk;
    Divisor each;
    Bytes step;
};

struct TreeTables {
    std::vector<TreeNodeArguments> nodes;
    std::vector<u32> starts;
    std::vector<Bytes> offsets;
    std::vector<u32> children;
    std::vector<u32> hints;
};

// Every address of a word is a multiple of the result: the largest power of two, at most 16, that divides every length, step, offset and address.
inline u32 word_width(const Node& node, const void* strided, const void* packed) {
    const Bytes all = node.gathered | reinterpret_cast<Bytes>(strided) | reinterpret_cast<Bytes>(packed) | 16;
    return static_cast<u32>(all & -all);
}

// The steps and counts of a nest that is at most `deepest_nest` deep, in words of `width` bytes.
inline NestArguments nest_of(const Node& node, u32 width) {
    NestArguments nest;
    const Node* inner = &node;
    for (int level = node.depth - 1; level >= 0; --level, inner = inner->child.get()) {
        nest.step[level] = inner->step;
        nest.count[level] = Divisor(inner->count);
    }
    nest.block = Divisor(inner->bytes / width);
    return nest;
}

// One launch's part of a nest.
inline RequestArguments request_of(const Node& node, char* strided, char* packed) {
    const u32 width = word_width(node, strided, packed), depth = static_cast<u32>(std::max(1, node.depth)); // one block: a nest of a single step
    return {strided, packed, static_cast<u32>(node.bytes / width), width, depth, 0, nest_of(node, width)};
}

struct LinkArguments {
    char* from;
    char* to;
    u32 words, width, depth, unused = 0;
    NestArguments source, target;
};

constexpr int most_links = 15; // as LINKS of kernels.cu

struct LinksArguments {
    u32 count = 0;
    u32 first[most_links + 1] = {};
    u32 unused = 0;
    LinkArguments link[most_links];
};
static_assert(sizeof(LinkArguments) == 256 && sizeof(LinksArguments) <= 4096 - 64);

inline bool is_nest(const Node& node) { return node.depth >= 0 && node.depth <= deepest_nest && node.bytes < most_words; }

// One launch's part of two nests of as many bytes.
inline LinkArguments link_of(const Node& source, char* from, const Node& target, char* to) {
    const u32 width = std::min(word_width(source, from, to), word_width(target, from, to));
    const auto depth = static_cast<u32>(std::max({1, source.depth, target.depth}));
    return {from, to, static_cast<u32>(source.bytes / width), width, depth, 0, nest_of(source, width), nest_of(target, width)};
}

// About two chunks a part, so that a search that begins at its chunk's hint takes a step or two, and the table stays small beside the others. The
// last hint, one beyond the chunks, is the last part.
inline void add_hints(const Node& node, Bytes width, TreeNodeArguments& arguments, std::vector<u32>& hints) {
    const Bytes words = node.bytes / width, parts = static_cast<Bytes>(node.parts.size());
    arguments.chunk = static_cast<u32>(std::bit_width(static_cast<std::uint64_t>(words / (2 * parts) | 1)) - 1);
    arguments.hint = static_cast<u32>(hints.size());
    u32 part = 0;
    for (Bytes word = 0; word < words; word += Bytes(1) << arguments.chunk) {
        while (part + 1 < node.parts.size() && node.starts[part + 1] <= word * width) ++part;
        hints.push_back(part);
    }
    hints.push_back(static_cast<u32>(parts - 1));
}

// The tables of a tree in words of `width` bytes.
inline u32 add_tree(const Node& node, Bytes width, TreeTables& tables) {
    const auto here = static_cast<u32>(tables.nodes.size());
    if (node.kind == Kind::dense) {
        tables.nodes.push_back({0, 0, 0, 0, Divisor(), 0});
        return here;
    }
    if (node.kind == Kind::strided) {
        tables.nodes.push_back({1, 0, 0, 0, Divisor(node.child->bytes / width), node.step});
        const u32 child = add_tree(*node.child, width, tables);
        tables.nodes[here].first = child;
        return here;
    }
    bool equal = true, dense = true;
    for (const Part& part : node.parts) {
        equal = equal && part.node->bytes == node.parts[0].node->bytes;
        dense = dense && part.node->kind == Kind::dense;
    }
    const auto first = static_cast<u32>(tables.starts.size());
    const auto count = static_cast<u32>(node.parts.size());
    const u32 kind = (equal ? 2u : 3u) + (dense ? 2u : 0u);
    tables.nodes.push_back({kind, first, 0, 0, equal ? Divisor(node.parts[0].node->bytes / width) : Divisor(), 0});
    if (!equal) add_hints(node, width, tables.nodes[here], tables.hints);
    tables.children.resize(first + count);
    for (u32 i = 0; i < count; ++i) {
        tables.starts.push_back(static_cast<u32>(node.starts[i] / width));
        tables.offsets.push_back(node.parts[i].offset);
    }
    if (dense) return here;
    const Node* last = nullptr; // parts of an indexed type share one node
    for (u32 i = 0; i < count; ++i) {
        const Node* child = node.parts[i].node.get();
        const bool again = last && (child == last || (child->kind == Kind::dense && last->kind == Kind::dense));
        const u32 index = again ? tables.children[first + i - 1] : add_tree(*child, width, tables);
        tables.children[first + i] = index;
        last = child;
    }
    return here;
}

} // namespace warpwright::mpi
