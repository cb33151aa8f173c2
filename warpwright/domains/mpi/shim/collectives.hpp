// All-to-all and neighbour collectives of derived datatypes: the blocks of a side are one layout, packed at once, and travel as MPI_PACKED.
//
// Each side is decided by each process alone, as in a message: these algorithms move whole blocks, so that only their bytes have to agree. That does
// not hold for broadcasts, gathers and reductions, which some libraries cut into segments by the size of the type: those are forwarded.
#pragma once
#include <array>

#include "messages.hpp"

namespace warpwright::mpi {

inline Original<int(Handle, int*)> comm_size("MPI_Comm_size");
inline Original<int(Handle, int*)> comm_remote_size("MPI_Comm_remote_size");
inline Original<int(Handle, int*)> topo_test("MPI_Topo_test");
inline Original<int(Handle, int*)> cartdim_get("MPI_Cartdim_get");
inline Original<int(Handle, int, int, int*, int*)> cart_shift("MPI_Cart_shift");
inline Original<int(Handle, int, int*)> graph_neighbors_count("MPI_Graph_neighbors_count");
inline Original<int(Handle, int*, int*, int*)> dist_graph_neighbors_count("MPI_Dist_graph_neighbors_count");

inline Counter all_to_alls, neighbours;

// How many blocks a process sends and receives; absent: some neighbour is MPI_PROC_NULL, whose block stays as it is.
struct Peers {
    int out = 0, in = 0;
    bool absent = false;
};

inline bool all_peers(Handle comm, Peers& peers) {
    int inter = 0;
    if (comm_test_inter(comm, &inter) || (inter ? comm_remote_size : comm_size)(comm, &peers.out)) return false;
    peers.in = peers.out;
    return true;
}

inline bool neighbour_peers(Handle comm, Peers& peers) {
    using namespace mpi_constant;
    int kind = undefined, rank = 0, weighted = 0;
    if (topo_test(comm, &kind)) return false;
    if (kind == distributed_graph) return !dist_graph_neighbors_count(comm, &peers.in, &peers.out, &weighted);
    if (kind == graph) {
        if (comm_rank(comm, &rank) || graph_neighbors_count(comm, rank, &peers.out)) return false;
        peers.in = peers.out;
        return true;
    }
    int dims = 0;
    if (kind != cartesian || cartdim_get(comm, &dims)) return false;
    peers.out = peers.in = 2 * dims;
    for (int d = 0; d < dims; ++d) {
        int before = 0, behind = 0;
        if (cart_shift(comm, d, 1, &before, &behind)) return false;
        peers.absent |= before == proc_null || behind == proc_null;
    }
    return true;
}

// Layouts of blocks that were put together last: programs repeat themselves, and tables on a GPU are kept by layout.
class Joined {
public:
    Layout of(std::vector<Layout>&& parts) {
        const std::lock_guard lock(guard_);
        for (const auto& [known, whole] : kept_)
            if (std::equal(known.begin(), known.end(), parts.begin(), parts.end(), alike)) return whole;
        auto& [known, whole] = kept_[next_++ % kept_.size()];
        known.clear(); // no match for a thread that meets an exception below
        whole = concat(parts);
        known = std::move(parts);
        return whole;
    }

private:
    static bool alike(const Layout& a, const Layout& b) { return a.node == b.node && a.offset == b.offset; }
    std::mutex guard_;
    std::array<std::pair<std::vector<Layout>, Layout>, 16> kept_;
    std::size_t next_ = 0;
};

inline Joined joined;

// One side as the library gets it: bytes and places of the blocks in the buffer, and a type for each.
template <class Size, class Place>
struct Side {
    Staged staged;
    std::vector<Size> counts;
    std::vector<Place> places;
    std::vector<Handle> types;

    explicit operator bool() const { return staged.buffer != nullptr; }
    char* memory() const { return staged.buffer->memory; }
};

struct Block {
    Count count;
    Handle datatype;
    Bytes at; // in bytes; in extents of the type where `scaled`
    bool scaled;
};

// Stage `blocks` blocks, each as `block(i)` says; false where the side is the library's own.
template <class Size, class Place, class Get>
bool stage_side(const void* base, int blocks, Get block, Side<Size, Place>& side) {
    if (!enabled || blocks <= 0) return false;
    try {
        std::vector<Layout> parts;
        parts.reserve(static_cast<std::size_t>(blocks));
        Bytes total = 0, worth = 0;
        bool derived = false;
        for (int i = 0; i < blocks; ++i) {
            const Block one = block(i);
            Bytes bytes = 0;
            side.places.push_back(static_cast<Place>(total));
            if (one.count < 0) return false; // an error, which the library reports
            if (one.count > 0) {
                Type* type = types.get(one.datatype);
                if (!type->known) return false;
                const Layout whole = type->whole(one.count);
                bytes = whole.bytes();
                parts.push_back({plus(whole.offset, one.scaled ? times(one.at, type->extent) : one.at), whole.node});
                derived |= !type->forwarded;
                if (type->worth_on_host) worth = plus(worth, bytes);
            }
            total = plus(total, bytes);
            if (bytes > static_cast<Bytes>(std::numeric_limits<Size>::max()) || total > static_cast<Bytes>(std::numeric_limits<Place>::max())) return false;
            side.counts.push_back(static_cast<Size>(bytes));
        }
        if (!derived) return false;
        side.types.assign(static_cast<std::size_t>(blocks), packed_handle());
        return stage_layout(base, joined.of(std::move(parts)), [&] { return worth * 2 >= total && total >= least_on_host(); }, side.staged);
    } catch (const Overflow&) {
        return false;
    }
}

// Both sides of one collective.
template <class Size, class Place>
struct Sides {
    Side<Size, Place> out, in;

    template <class Out, class In>
    bool stage(const void* from, Out out_block, void* to, In in_block, const Peers& peers) {
        if (from == mpi_constant::in_place || to == mpi_constant::in_place) return false;
        if (stage_side(from, peers.out, out_block, out) && !out.staged.pack()) give_up(out.staged);
        if (stage_side(to, peers.in, in_block, in) && peers.absent && !in.staged.pack()) give_up(in.staged); // what nobody sends is put back
        return out || in;
    }

    static void give_up(Staged& staged) {
        staged.release();
        staged.hopeless = staged.device >= 0;
    }

    bool hopeless() const { return mpi::hopeless(out.staged) || mpi::hopeless(in.staged); }

    int finish(int code) {
        if (!code && in && !in.staged.unpack(in.staged.bytes())) code = refused();
        out.staged.release(), in.staged.release();
        return code;
    }
};

// Note a request that carries both sides, or give the bytes back where the library made none.
template <class Size, class Place>
int noted(int code, const std::shared_ptr<Sides<Size, Place>>& sides, Handle* request) {
    if (code) return sides->finish(code);
    const bool receives = static_cast<bool>(sides->in);
    auto* operation = new Operation{receives ? sides->in.staged : sides->out.staged, receives, false, true, false};
    operation->whole = true;
    if (receives && sides->out) operation->sent = sides->out.staged;
    operation->kept = sides; // the library reads the arrays until the end
    requests.add(*request, operation);
    return code;
}

// What all calls have in common: count the call, stage, make the library's call. `more` is the request of a nonblocking call, or nothing.
template <class Size, class Place, class Out, class In, class Call, class Forward, class... More>
int collective(Counter& counter, bool known, const Peers& peers, const void* from, Out out, void* to, In in, Call call, Forward forward, More... more) {
    if (!known) {
        counter.note(false);
        return forward();
    }
    const auto sides = std::make_shared<Sides<Size, Place>>();
    const bool staged = counter.note(sides->stage(from, out, to, in, peers));
    if (sides->hopeless()) return sides->finish(refused());
    if (!staged) return forward();
    const int code = call(*sides);
    if constexpr (sizeof...(More) == 0) return sides->finish(code);
    else return noted(code, sides, more...);
}

using FindPeers = bool (*)(Handle, Peers&);

// One count and one type for every block of a side.
template <class Size, class... More>
int uniform(Original<int(const void*, Size, Handle, void*, Size, Handle, Handle, More...)>& original, Counter& counter, FindPeers find, const void* from,
            Size count, Handle type, void* to, Size in_count, Handle in_type, Handle comm, More... more) {
    Peers peers;
    const bool known = !(forwarded(type) && forwarded(in_type)) && find(comm, peers);
    return collective<Size, Address>(
        counter, known, peers, from, [&](int i) { return Block{count, type, times(i, count), true}; },
        to, [&](int i) { return Block{in_count, in_type, times(i, in_count), true}; },
        [&](auto& s) {
            return original(s.out ? s.out.memory() : from, s.out ? s.out.counts[0] : count, s.out ? packed_handle() : type,
                            s.in ? s.in.memory() : to, s.in ? s.in.counts[0] : in_count, s.in ? packed_handle() : in_type, comm, more...);
        },
        [&] { return original(from, count, type, to, in_count, in_type, comm, more...); }, more...);
}

// A count and a place for each block, in extents of the side's one type.
template <class Size, class Place, class... More>
int varying(Original<int(const void*, const Size*, const Place*, Handle, void*, const Size*, const Place*, Handle, Handle, More...)>& original,
            Counter& counter, FindPeers find, const void* from, const Size* counts, const Place* places, Handle type, void* to, const Size* in_counts,
            const Place* in_places, Handle in_type, Handle comm, More... more) {
    Peers peers;
    const bool known = !(forwarded(type) && forwarded(in_type)) && find(comm, peers);
    return collective<Size, Place>(
        counter, known, peers, from, [&](int i) { return Block{counts[i], type, places[i], true}; },
        to, [&](int i) { return Block{in_counts[i], in_type, in_places[i], true}; },
        [&](auto& s) {
            return original(s.out ? s.out.memory() : from, s.out ? s.out.counts.data() : counts, s.out ? s.out.places.data() : places,
                            s.out ? packed_handle() : type, s.in ? s.in.memory() : to, s.in ? s.in.counts.data() : in_counts,
                            s.in ? s.in.places.data() : in_places, s.in ? packed_handle() : in_type, comm, more...);
        },
        [&] { return original(from, counts, places, type, to, in_counts, in_places, in_type, comm, more...); }, more...);
}

// A count, a place in bytes and a type for each block.
template <class Size, class Place, class... More>
int typed(Original<int(const void*, const Size*, const Place*, const Handle*, void*, const Size*, const Place*, const Handle*, Handle, More...)>& original,
          Counter& counter, FindPeers find, const void* from, const Size* counts, const Place* places, const Handle* types, void* to,
          const Size* in_counts, const Place* in_places, const Handle* in_types, Handle comm, More... more) {
    Peers peers;
    const bool known = enabled && find(comm, peers);
    return collective<Size, Place>(
        counter, known, peers, from, [&](int i) { return Block{counts[i], types[i], places[i], false}; },
        to, [&](int i) { return Block{in_counts[i], in_types[i], in_places[i], false}; },
        [&](auto& s) {
            return original(s.out ? s.out.memory() : from, s.out ? s.out.counts.data() : counts, s.out ? s.out.places.data() : places,
                            s.out ? s.out.types.data() : types, s.in ? s.in.memory() : to, s.in ? s.in.counts.data() : in_counts,
                            s.in ? s.in.places.data() : in_places, s.in ? s.in.types.data() : in_types, comm, more...);
        },
        [&] { return original(from, counts, places, types, to, in_counts, in_places, in_types, comm, more...); }, more...);
}

} // namespace warpwright::mpi

// The calls themselves. MORE and GIVEN are the parameter and the argument of a nonblocking call's request, as (, Handle* request) and (, request).
#define WARPWRIGHT_BARE(...) __VA_ARGS__
#define WARPWRIGHT_UNIFORM(name, Size, find, counter, WIDTH, MORE, GIVEN) \
    WARPWRIGHT_API int name(const void* from, Size count, Handle type, void* to, Size in_count, Handle in_type, Handle comm WARPWRIGHT_BARE MORE) { \
        static constinit Original<int(const void*, Size, Handle, void*, Size, Handle, Handle WARPWRIGHT_BARE WIDTH)> original(#name); \
        return uniform(original, counter, find, from, count, type, to, in_count, in_type, comm WARPWRIGHT_BARE GIVEN); \
    }
#define WARPWRIGHT_BLOCKS(name, serve, Size, Place, Types, find, counter, WIDTH, MORE, GIVEN) \
    WARPWRIGHT_API int name(const void* from, const Size* counts, const Place* places, Types types, void* to, const Size* in_counts, \
                            const Place* in_places, Types in_types, Handle comm WARPWRIGHT_BARE MORE) { \
        static constinit Original<int(const void*, const Size*, const Place*, Types, void*, const Size*, const Place*, Types, Handle WARPWRIGHT_BARE WIDTH)> \
            original(#name); \
        return serve(original, counter, find, from, counts, places, types, to, in_counts, in_places, in_types, comm WARPWRIGHT_BARE GIVEN); \
    }
#define WARPWRIGHT_COLLECTIVES(name, suffix, Size, Place, WidePlace, find, counter, WIDTH, MORE, GIVEN) \
    WARPWRIGHT_UNIFORM(MPI_##name##suffix, Size, find, counter, WIDTH, MORE, GIVEN) \
    WARPWRIGHT_BLOCKS(MPI_##name##v##suffix, varying, Size, Place, Handle, find, counter, WIDTH, MORE, GIVEN) \
    WARPWRIGHT_BLOCKS(MPI_##name##w##suffix, typed, Size, WidePlace, const Handle*, find, counter, WIDTH, MORE, GIVEN)
#define WARPWRIGHT_ALL_COLLECTIVES(suffix, Size, Place) \
    WARPWRIGHT_COLLECTIVES(Alltoall, suffix, Size, Place, Place, all_peers, all_to_alls, (), (), ()) \
    WARPWRIGHT_COLLECTIVES(Ialltoall, suffix, Size, Place, Place, all_peers, all_to_alls, (, Handle*), (, Handle* request), (, request)) \
    WARPWRIGHT_COLLECTIVES(Neighbor_alltoall, suffix, Size, Place, Address, neighbour_peers, neighbours, (), (), ()) \
    WARPWRIGHT_COLLECTIVES(Ineighbor_alltoall, suffix, Size, Place, Address, neighbour_peers, neighbours, (, Handle*), (, Handle* request), (, request))

WARPWRIGHT_ALL_COLLECTIVES(, int, int)
#ifdef WARPWRIGHT_LARGE
WARPWRIGHT_ALL_COLLECTIVES(_c, Count, Address)
#endif
