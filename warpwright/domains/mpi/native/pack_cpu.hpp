// Packing and unpacking between host buffers. One body serves both directions.
//
// Blocks of up to 64 bytes are copied by a loop that was compiled for their length (one vector move or two that overlap), on machines that gain by it
// with a prefetch ahead; longer ones by memcpy. A nest that runs across cache lines is walked by tiles, line by line.
#pragma once
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "layout.hpp"

namespace warpwright::mpi {

constexpr Bytes cache_line = 64;
constexpr Bytes prefetch_distance = 1024; // bytes of the strided side ahead, at least 8 blocks; see `ahead`
constexpr int reach_of_prefetch = 19;     // from 256 KiB on: what is smaller lies in a cache of the core
constexpr int deepest = 8;                // levels of a nest that one odometer walks; deeper ones recurse

enum class Direction { pack, unpack };

template <Direction D>
inline void move(char* strided, char* packed, Bytes bytes) {
    if constexpr (D == Direction::pack) std::memcpy(packed, strided, static_cast<std::size_t>(bytes));
    else std::memcpy(strided, packed, static_cast<std::size_t>(bytes));
}

template <Direction D, int B>
inline void move_fixed(char* strided, char* packed) {
    if constexpr (D == Direction::pack) __builtin_memcpy(packed, strided, B);
    else __builtin_memcpy(strided, packed, B);
}

// A block of between `Half` and 2 `Half` bytes: two moves that overlap.
template <Direction D, int Half>
inline void move_two(char* strided, char* packed, Bytes bytes) {
    struct Word { char data[Half]; } first, second;
    char *from = D == Direction::pack ? strided : packed, *to = D == Direction::pack ? packed : strided;
    __builtin_memcpy(&first, from, Half), __builtin_memcpy(&second, from + bytes - Half, Half);
    __builtin_memcpy(to, &first, Half), __builtin_memcpy(to + bytes - Half, &second, Half);
}

template <Direction D>
inline void move_any(char* strided, char* packed, Bytes bytes) {
    if (bytes > 64) return move<D>(strided, packed, bytes);
    if (bytes >= 32) return move_two<D, 32>(strided, packed, bytes);
    if (bytes >= 16) return move_two<D, 16>(strided, packed, bytes);
    if (bytes >= 8) return move_two<D, 8>(strided, packed, bytes);
    if (bytes >= 4) return move_two<D, 4>(strided, packed, bytes);
    if (bytes >= 2) return move_two<D, 2>(strided, packed, bytes);
    move_fixed<D, 1>(strided, packed);
}

// How many rows ahead to prefetch; 0 where consecutive rows share cache lines, or the blocks are long enough for the hardware.
inline Bytes ahead(Bytes step, Bytes block) {
    const Bytes distance = step < 0 ? -step : step;
    if (distance < 128 || block > 64) return 0;
    return std::max<Bytes>(8, prefetch_distance / distance);
}

constexpr Bytes close_by = 256; // steps of four blocks a turn

// Four blocks a turn where they lie close, each at a distance of its own from one address: an addition a block would be a chain of one cycle a block,
// and a cycle is time for two. One by one where they do not: the hardware's prefetch follows each load by its own step, up to 2 KiB.
template <class Move>
inline void row_loop(char* strided, char* packed, Bytes count, Bytes step, Bytes block, Move move_block) {
    if (step <= close_by && step >= -close_by)
        for (; count >= 4; count -= 4, strided += 4 * step, packed += 4 * block)
            for (int i = 0; i < 4; ++i) move_block(strided + i * step, packed + i * block);
#pragma GCC unroll 1
    for (; count > 0; --count, strided += step, packed += block) move_block(strided, packed);
}

// The same with a prefetch of what lies `early` rows ahead; out of line, because short rows without one should not pay for its registers.
template <Direction D, class Move>
[[gnu::noinline]] void row_loop_ahead(char* strided, char* packed, Bytes count, Bytes step, Bytes block, Bytes early, Move move_block) {
    const Bytes distance = early * step;
#pragma GCC unroll 1
    for (; count > early; --count, strided += step, packed += block) {
        __builtin_prefetch(strided + distance, D == Direction::pack ? 0 : 1, 3);
        move_block(strided, packed);
    }
    row_loop(strided, packed, count, step, block, move_block);
}

using Rows = void (*)(char* strided, char* packed, Bytes count, Bytes step, Bytes block, Bytes early);

template <Direction D, int B>
void rows_fixed(char* strided, char* packed, Bytes count, Bytes step, Bytes, Bytes early) {
    const auto one = [](char* s, char* p) { move_fixed<D, B>(s, p); };
    if (early) row_loop_ahead<D>(strided, packed, count, step, B, early, one);
    else row_loop(strided, packed, count, step, B, one);
}

template <Direction D>
void rows_any(char* strided, char* packed, Bytes count, Bytes step, Bytes block, Bytes) { // longer than what is prefetched for
    row_loop(strided, packed, count, step, block, [block](char* s, char* p) { move<D>(s, p, block); });
}

template <Direction D, int... B>
constexpr auto rows_table(std::integer_sequence<int, B...>) {
    struct Table { Rows of[sizeof...(B)]; };
    return Table{{rows_fixed<D, B + 1>...}};
}

template <Direction D>
inline Rows rows_for(Bytes block) {
    static constexpr auto table = rows_table<D>(std::make_integer_sequence<int, 64>());
    return block <= 64 ? table.of[block - 1] : rows_any<D>;
}

// The outer steps of `level` 1 that fall into one cache line, where the innermost level leaves it at each step: 1 where that is not so, or where
// steps overlap, which would make the order of the copies matter.
inline Bytes tile_of(const Bytes* count, const Bytes* step, Bytes block) {
    const Bytes inner = step[0] < 0 ? -step[0] : step[0], outer = step[1] < 0 ? -step[1] : step[1];
    const bool across = inner >= cache_line && outer < cache_line && count[0] >= 8;
    if (!across || outer < block || inner < count[1] * outer) return 1;
    return std::min(count[1], cache_line / outer);
}

// The two innermost levels by tiles: the packed side is touched in `tile` streams, each line of the strided side once.
template <Direction D>
void copy_tiles(char* strided, char* packed, const Bytes* count, const Bytes* step, Bytes block, Bytes tile) {
    const Bytes row = count[0] * block;
    const auto tiles = [&](auto move_block) {
        for (Bytes first = 0; first < count[1]; first += tile) {
            const Bytes last = std::min(first + tile, count[1]);
            for (Bytes i = 0; i < count[0]; ++i)
                for (Bytes outer = first; outer < last; ++outer) move_block(strided + i * step[0] + outer * step[1], packed + outer * row + i * block);
        }
    };
    switch (block) {
        case 4: return tiles([](char* s, char* p) { move_fixed<D, 4>(s, p); });
        case 8: return tiles([](char* s, char* p) { move_fixed<D, 8>(s, p); });
        case 16: return tiles([](char* s, char* p) { move_fixed<D, 16>(s, p); });
        default: return tiles([block](char* s, char* p) { move_any<D>(s, p, block); });
    }
}

// Whether a prefetch pays is the machine's affair: one Xeon and one EPYC took 10 to 50 % less time with it, because the hardware's own stops at page
// ends, and a newer Xeon up to 40 % more. So the first calls over as much memory try both in turns, and the least times decide.
class Trial {
public:
    bool with() const {
        const int call = calls_.load(std::memory_order_relaxed);
        return call < tries ? call % 2 : best_[1].load(std::memory_order_relaxed) < 0.98F * best_[0].load(std::memory_order_relaxed);
    }
    bool decided() const { return calls_.load(std::memory_order_relaxed) >= tries; }
    void note(bool with, float each) {
        if (each < best_[with].load(std::memory_order_relaxed)) best_[with].store(each, std::memory_order_relaxed);
        calls_.fetch_add(1, std::memory_order_relaxed);
    }

private:
    static constexpr int tries = 16;
    std::atomic<int> calls_{0};
    std::atomic<float> best_[2] = {1e30F, 1e30F};
};

inline Trial trials[2][64]; // by direction and the logarithm of the bytes from the first to the last

// A nest of 0 to `deepest` Strided above one Dense, with what its loops need; level 0 is the innermost. A value without allocations: the shim keeps
// one for each datatype, so that a small object costs little more than its bytes.
struct Nest {
    int depth = -1; // -1: no nest
    Bytes block = 0, bytes = 0, early = 0, tile = 1;
    int reach = 0; // the logarithm of the bytes from the first to the last
    Bytes count[deepest], step[deepest];

    // `more` of this, `distance` bytes apart; no nest where that is too deep.
    Nest repeated(Bytes more, Bytes distance) const {
        Nest all = *this;
        all.bytes = times(bytes, more);
        const Bytes end = depth ? count[depth - 1] * step[depth - 1] : block;
        if (distance == end) (depth ? all.count[depth - 1] : all.block) *= more;
        else if (depth == deepest) all.depth = -1;
        else all.count[depth] = more, all.step[depth] = distance, ++all.depth;
        return all.planned();
    }

    Nest& planned() {
        Bytes span = block;
        for (int level = 0; level < depth; ++level) span += (count[level] - 1) * (step[level] < 0 ? -step[level] : step[level]);
        reach = std::bit_width(static_cast<std::uint64_t>(span));
        early = depth > 0 && reach >= reach_of_prefetch ? ahead(step[0], block) : 0;
        tile = depth > 1 ? tile_of(count, step, block) : 1;
        return *this;
    }
};

inline Nest nest_of(const Node& node) {
    Nest nest;
    if (node.depth < 0 || node.depth > deepest) return nest;
    nest.depth = node.depth, nest.bytes = node.bytes;
    const Node* inner = &node;
    for (int level = node.depth - 1; level >= 0; --level) nest.count[level] = inner->count, nest.step[level] = inner->step, inner = inner->child.get();
    nest.block = inner->bytes;
    return nest.planned();
}

template <Direction D>
inline char* copy_rows(const Nest& nest, char* strided, char* packed, Bytes early) {
    const auto& [depth, block, bytes, _, tile, reach, count, step] = nest;
    const Bytes row = count[0] * block;
    const Rows rows = rows_for<D>(block);
    Bytes at[deepest];
    for (int level = 1; level < depth; ++level) at[level] = 0;
    for (;;) {
        int level = 1;
        if (tile > 1) {
            copy_tiles<D>(strided, packed, count, step, block, tile);
            packed += row * count[1];
            level = 2;
        } else {
            rows(strided, packed, count[0], step[0], block, early);
            packed += row;
        }
        for (; level < depth; ++level) {
            strided += step[level];
            if (++at[level] < count[level]) break;
            strided -= step[level] * count[level], at[level] = 0;
        }
        if (level >= depth) return packed;
    }
}

template <Direction D>
[[gnu::noinline]] char* copy_trying(const Nest& nest, char* strided, char* packed) {
    Trial& trial = trials[D == Direction::pack][nest.reach];
    const bool with = trial.with();
    if (trial.decided()) return copy_rows<D>(nest, strided, packed, with ? nest.early : 0);
    const auto start = std::chrono::steady_clock::now();
    char* end = copy_rows<D>(nest, strided, packed, with ? nest.early : 0);
    const std::chrono::duration<float, std::nano> taken = std::chrono::steady_clock::now() - start;
    trial.note(with, taken.count() * static_cast<float>(nest.block) / static_cast<float>(nest.bytes));
    return end;
}

template <Direction D>
inline char* copy_nest(const Nest& nest, char* strided, char* packed) {
    if (nest.depth == 0) {
        move<D>(strided, packed, nest.block);
        return packed + nest.block;
    }
    if (nest.early) return copy_trying<D>(nest, strided, packed);
    return copy_rows<D>(nest, strided, packed, 0);
}

using Places = void (*)(char* strided, char* packed, const Bytes* at, std::size_t count);

template <Direction D, int B>
void places_fixed(char* strided, char* packed, const Bytes* at, std::size_t count) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < count; ++i) move_fixed<D, B>(strided + at[i], packed + static_cast<Bytes>(i) * B);
}

template <Direction D, int... B>
constexpr auto places_table(std::integer_sequence<int, B...>) {
    struct Table { Places of[sizeof...(B)]; };
    return Table{{places_fixed<D, B + 1>...}};
}

// The parts of a Concat of Dense: at places of their own, of one length or each of its own.
template <Direction D>
inline char* copy_runs(const Node& node, char* strided, char* packed) {
    if (node.unit) {
        static constexpr auto table = places_table<D>(std::make_integer_sequence<int, 64>());
        table.of[node.unit - 1](strided, packed, node.at.data(), node.at.size());
        return packed + node.bytes;
    }
    const Bytes *at = node.at.data(), *length = node.lengths.data();
    for (std::size_t i = 0, count = node.at.size(); i < count; packed += length[i], ++i) move_any<D>(strided + at[i], packed, length[i]);
    return packed;
}

// Copy all bytes of `node`, whose start is `strided`; return the end of what was packed.
template <Direction D>
char* copy_all(const Node& node, char* strided, char* packed) {
    if (node.depth == 0) {
        move<D>(strided, packed, node.bytes);
        return packed + node.bytes;
    }
    if (node.depth > 0 && node.depth <= deepest) return copy_nest<D>(nest_of(node), strided, packed);
    if (node.kind == Kind::strided) {
        for (Bytes i = 0; i < node.count; ++i) packed = copy_all<D>(*node.child, strided + i * node.step, packed);
        return packed;
    }
    if (!node.at.empty()) return copy_runs<D>(node, strided, packed);
    for (const Part& part : node.parts) {
        if (part.node->depth == 0) {
            move_any<D>(strided + part.offset, packed, part.node->bytes);
            packed += part.node->bytes;
        } else {
            packed = copy_all<D>(*part.node, strided + part.offset, packed);
        }
    }
    return packed;
}

// Copy the bytes [from, to) of the packed stream of `node`; `packed` is where byte `from` lies.
template <Direction D>
char* copy_range(const Node& node, char* strided, char* packed, Bytes from, Bytes to) {
    if (from >= to) return packed;
    if (from == 0 && to == node.bytes) return copy_all<D>(node, strided, packed);
    if (node.kind == Kind::dense) {
        move<D>(strided + from, packed, to - from);
        return packed + (to - from);
    }
    if (node.kind == Kind::strided) {
        const Bytes each = node.child->bytes;
        for (Bytes i = from / each; i * each < to; ++i) {
            packed = copy_range<D>(*node.child, strided + i * node.step, packed, std::max<Bytes>(0, from - i * each), std::min(each, to - i * each));
        }
        return packed;
    }
    const auto first = std::upper_bound(node.starts.begin(), node.starts.end(), from) - node.starts.begin() - 1;
    for (std::size_t i = static_cast<std::size_t>(first); i < node.parts.size() && node.starts[i] < to; ++i) {
        const Part& part = node.parts[i];
        packed = copy_range<D>(*part.node, strided + part.offset, packed, std::max<Bytes>(0, from - node.starts[i]),
                               std::min(part.node->bytes, to - node.starts[i]));
    }
    return packed;
}

// Pack the bytes [from, to) of the stream of a layout whose address 0 is `base`, or unpack them.
template <Direction D>
inline void copy(const Layout& layout, void* base, void* packed, Bytes from, Bytes to) {
    if (layout.node) copy_range<D>(*layout.node, static_cast<char*>(base) + layout.offset, static_cast<char*>(packed), from, to);
}

} // namespace warpwright::mpi
