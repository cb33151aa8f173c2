// From a datatype of the MPI library to a layout, by its envelope and contents. Extents are the library's: the families pad structs differently.
#pragma once
#include <optional>

#include "layout.hpp"
#include "library.hpp"

namespace warpwright::mpi {

struct Described {
    Layout layout; // of one object
    Bytes extent;
};

// A type of one element: it has no types inside, so that its contents are not asked for.
inline bool elementary(int combiner) {
    using namespace mpi_constant;
    return combiner == named || combiner == f90_real || combiner == f90_complex || combiner == f90_integer;
}

// The contents of a derived type. What a large-count constructor keeps in `counts` is moved to where the others keep it.
struct Contents {
    int combiner = 0;
    std::vector<Count> numbers;
    std::vector<Address> addresses;
    std::vector<Handle> types;
    bool valid = false;

    Contents() = default;
    Contents(const Contents&) = delete;
    Contents& operator=(const Contents&) = delete;
    ~Contents() {
        for (Handle type : types)
            if (!predefined(type)) type_free(&type);
    }
    static bool predefined(Handle type) {
        int integers, addresses, types, combiner;
        return type_get_envelope(type, &integers, &addresses, &types, &combiner) || elementary(combiner);
    }
};

inline void read_large(Handle type, Contents& contents) {
    Count integers, addresses, large, types;
    if (type_get_envelope_c(type, &integers, &addresses, &large, &types, &contents.combiner)) return;
    if (elementary(contents.combiner)) {
        contents.valid = true;
        return;
    }
    std::vector<int> small(static_cast<std::size_t>(integers));
    std::vector<Count> counts(static_cast<std::size_t>(large));
    contents.addresses.resize(static_cast<std::size_t>(addresses));
    std::vector<Handle> handles(static_cast<std::size_t>(types));
    if (type_get_contents_c(type, integers, addresses, large, types, small.data(), contents.addresses.data(), counts.data(), handles.data())) return;
    contents.types = std::move(handles);
    contents.valid = true;
    using namespace mpi_constant;
    if (counts.empty()) {
        contents.numbers.assign(small.begin(), small.end());
        return;
    }
    std::vector<Count>& numbers = contents.numbers;
    std::size_t head = counts.size(); // how many of the counts are numbers; the rest are displacements
    switch (contents.combiner) {
        case subarray:
            numbers.push_back(small[0]);
            numbers.insert(numbers.end(), counts.begin(), counts.end());
            numbers.push_back(small[1]);
            return;
        case darray: // size, rank, ndims | gsizes in counts | distributions, arguments, grid, order
            numbers.assign(small.begin(), small.begin() + 3);
            numbers.insert(numbers.end(), counts.begin(), counts.end());
            numbers.insert(numbers.end(), small.begin() + 3, small.end());
            return;
        case resized: head = 0; break;
        case hvector: head = 2; break;
        case hindexed: case structure: head = static_cast<std::size_t>(counts[0]) + 1; break;
        case hindexed_block: head = 2; break;
        default: break;
    }
    numbers.assign(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(head));
    contents.addresses.assign(counts.begin() + static_cast<std::ptrdiff_t>(head), counts.end());
}

inline void read_small(Handle type, Contents& contents) {
    int integers, addresses, types;
    if (type_get_envelope(type, &integers, &addresses, &types, &contents.combiner)) return;
    if (elementary(contents.combiner)) {
        contents.valid = true;
        return;
    }
    int few[64];
    std::vector<int> many;
    int* small = few;
    if (integers > 64) many.resize(static_cast<std::size_t>(integers)), small = many.data();
    contents.addresses.resize(static_cast<std::size_t>(addresses));
    std::vector<Handle> handles(static_cast<std::size_t>(types));
    if (type_get_contents(type, integers, addresses, types, small, contents.addresses.data(), handles.data())) return;
    contents.types = std::move(handles);
    contents.numbers.assign(small, small + integers);
    contents.valid = true;
}

std::optional<Described> described(Handle type);

// One dimension of a distributed array (MPI 4.1, section 5.1.4): blocks rank, rank + grid, ... of `argument` elements each.
inline Layout distributed(const Layout& element, Bytes extent, Bytes size, Bytes distribution, Bytes argument, Bytes grid, Bytes rank) {
    using namespace mpi_constant;
    if (distribution == distribute_none) grid = 1, rank = 0, argument = size;
    else if (argument == default_argument) argument = distribution == distribute_block ? (size + grid - 1) / grid : 1;
    if (argument <= 0) return {};
    const Bytes blocks = (size + argument - 1) / argument; // of all ranks
    if (rank >= blocks) return {};
    const Bytes mine = (blocks - 1 - rank) / grid + 1;
    const Bytes last_length = size - (blocks - 1) * argument;
    const bool short_last = (blocks - 1 - rank) % grid == 0 && last_length < argument;
    const Bytes step = times(times(argument, grid), extent), start = times(times(argument, rank), extent);
    Layout whole = strided(short_last ? mine - 1 : mine, step, strided(argument, extent, element));
    whole.offset += start;
    if (!short_last) return whole;
    Layout last = strided(last_length, extent, element);
    last.offset = plus(last.offset, plus(start, times(mine - 1, step)));
    return concat({whole, last});
}

inline Layout from_darray(const Contents& contents, const Described& child) {
    const std::vector<Count>& n = contents.numbers;
    const auto dims = static_cast<std::size_t>(n[2]);
    const Count *sizes = &n[3], *distributions = sizes + dims, *arguments = distributions + dims, *grid = arguments + dims;
    const bool c_order = grid[dims] == mpi_constant::order_c;
    std::vector<Count> coordinates(dims);
    Count rank = n[1];
    for (std::size_t d = dims; d-- > 0; rank /= grid[d]) coordinates[d] = rank % grid[d]; // the grid of processes is always row-major
    Layout layout = child.layout;
    Bytes extent = child.extent;
    for (std::size_t k = 0; k < dims; ++k) {
        const std::size_t d = c_order ? dims - 1 - k : k; // fastest first
        layout = distributed(layout, extent, sizes[d], distributions[d], arguments[d], grid[d], coordinates[d]);
        extent = times(extent, sizes[d]);
    }
    return layout;
}

inline Layout from_subarray(const Contents& contents, const Described& child) {
    const std::vector<Count>& n = contents.numbers;
    const auto dims = static_cast<std::size_t>(n[0]);
    const Count *sizes = &n[1], *chosen = sizes + dims, *starts = chosen + dims;
    const bool c_order = starts[dims] == mpi_constant::order_c;
    Layout layout = child.layout;
    Bytes step = child.extent;
    for (std::size_t k = 0; k < dims; ++k) {
        const std::size_t d = c_order ? dims - 1 - k : k;
        layout = strided(chosen[d], step, layout);
        layout.offset = plus(layout.offset, times(starts[d], step));
        step = times(step, sizes[d]);
    }
    return layout;
}

// Blocks of one child type: length(i) elements at displacement(i) bytes.
template <class Length, class Displacement>
Layout from_blocks(Count blocks, const Described& child, Length length, Displacement displacement) {
    std::vector<Layout> parts;
    parts.reserve(static_cast<std::size_t>(blocks));
    Layout block;
    Count block_length = -1;
    for (Count i = 0; i < blocks; ++i) {
        if (length(i) != block_length) block_length = length(i), block = strided(block_length, child.extent, child.layout);
        parts.push_back({plus(block.offset, displacement(i)), block.node});
    }
    return concat(parts);
}

inline std::optional<Layout> from_contents(const Contents& contents) {
    using namespace mpi_constant;
    const std::vector<Count>& n = contents.numbers;
    const std::vector<Address>& a = contents.addresses;
    if (contents.combiner == structure) {
        std::vector<Layout> parts;
        for (std::size_t i = 0; i < contents.types.size(); ++i) {
            const auto child = described(contents.types[i]);
            if (!child) return std::nullopt;
            parts.push_back(strided(n[i + 1], child->extent, child->layout));
            parts.back().offset = plus(parts.back().offset, a[i]);
        }
        return concat(parts);
    }
    if (contents.types.size() != 1) return std::nullopt;
    const auto child = described(contents.types[0]);
    if (!child) return std::nullopt;
    const Bytes extent = child->extent;
    const auto at = [](Count i) { return static_cast<std::size_t>(i); };
    switch (contents.combiner) {
        case duplicate: case resized: return child->layout;
        case contiguous: return strided(n[0], extent, child->layout);
        case vector: return strided(n[0], times(n[2], extent), strided(n[1], extent, child->layout));
        case hvector: return strided(n[0], a[0], strided(n[1], extent, child->layout));
        case indexed:
            return from_blocks(n[0], *child, [&](Count i) { return n[at(1 + i)]; }, [&](Count i) { return times(n[at(1 + n[0] + i)], extent); });
        case hindexed: return from_blocks(n[0], *child, [&](Count i) { return n[at(1 + i)]; }, [&](Count i) { return a[at(i)]; });
        case indexed_block: return from_blocks(n[0], *child, [&](Count) { return n[1]; }, [&](Count i) { return times(n[at(2 + i)], extent); });
        case hindexed_block: return from_blocks(n[0], *child, [&](Count) { return n[1]; }, [&](Count i) { return a[at(i)]; });
        case subarray: return from_subarray(contents, *child);
        case darray: return from_darray(contents, *child);
        default: return std::nullopt;
    }
}

// A predefined type: dense, but for the pair of a short and an int, the one that has a hole before its second member.
inline std::optional<Layout> from_named(Bytes size, Bytes extent) {
    if (size == 6 && extent == 8) return concat({{0, dense_node(2)}, {4, dense_node(4)}});
    return dense(size);
}

// Set where a derived type without bytes was read, as a part of another: some MPICH divides by zero where it packs such a type itself.
inline thread_local bool saw_empty = false;

// The layout and extent of a datatype; nothing for a type that this library cannot read or that does not fit 64 bits.
inline std::optional<Described> described(Handle type) {
    Count low, extent, size;
    if (type_get_extent(type, &low, &extent) || type_size(type, &size) || size < 0) return std::nullopt;
    Contents contents;
    static const bool large = type_get_contents_c.exists();
    large ? read_large(type, contents) : read_small(type, contents);
    if (!contents.valid) return std::nullopt;
    const bool leaf = elementary(contents.combiner);
    saw_empty = saw_empty || (!leaf && size == 0);
    const auto layout = leaf ? from_named(size, extent) : from_contents(contents);
    if (!layout || layout->bytes() != size) return std::nullopt; // the library is the authority: what disagrees with it is left to it
    return Described{*layout, extent};
}

} // namespace warpwright::mpi
