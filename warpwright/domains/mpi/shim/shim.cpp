// The interposed MPI functions for one library family (abi.hpp): each decides, then serves the call or forwards it untouched.
#include <optional>

#include "api.cpp"
#include "collectives.hpp"
#include "reorder.hpp"

namespace warpwright::mpi {

inline Original<int(Handle*)> type_commit("MPI_Type_commit");
inline Original<int(const void*, int, Handle, void*, int, int*, Handle)> pack("MPI_Pack");
inline Original<int(const void*, int, int*, void*, int, Handle, Handle)> unpack("MPI_Unpack");
inline Original<int(const void*, Count, Handle, void*, Count, Count*, Handle)> pack_c("MPI_Pack_c");
inline Original<int(const void*, Count, Count*, void*, Count, Handle, Handle)> unpack_c("MPI_Unpack_c");

// The same from and to host memory, for a nest: nothing is allocated or locked.
template <Direction D, class Size>
inline std::optional<int> served_nest(const Nest& nest, char* base, char* packed, Size room, Size* position) {
    if (nest.bytes > room - *position) return std::nullopt;
    copy_nest<D>(nest, base, packed + *position);
    *position += static_cast<Size>(nest.bytes);
    return 0;
}

// Serve a pack or unpack of `count` objects: the call's code; nothing where it is the library's: errors too, which it reports in its own way.
template <Direction D, class Size>
std::optional<int> served(void* strided, Count count, Type* type, void* packed, Size room, Size* position) {
    if (count <= 0 || !packed || !position || *position < 0) return std::nullopt;
    const bool host = !gpu::present.load(std::memory_order_relaxed) && gpu::on_heap(packed) && strided &&
                      gpu::on_heap(static_cast<char*>(strided) + type->layout.offset);
    gpu::Driver* const cuda = host ? nullptr : gpu::driver();
    if (gpu::avoided(cuda)) return std::nullopt;
    try {
        if (!cuda && type->nest.depth >= 0) { // long blocks too, which messages leave to the library: both copy alike, and this call is shorter
            char *base = static_cast<char*>(strided) + type->layout.offset, *there = static_cast<char*>(packed);
            if (count == 1) return served_nest<D>(type->nest, base, there, room, position);
            if (const Nest all = type->nest.repeated(count, type->extent); all.depth >= 0) return served_nest<D>(all, base, there, room, position);
        }
        const Layout whole = type->whole(count);
        if (whole.bytes() > room - *position) return std::nullopt;
        char *base = static_cast<char*>(strided), *end = static_cast<char*>(packed) + *position;
        if (cuda) {
            if (!base) return std::nullopt; // MPI_BOTTOM: its parts may lie in different memories
            const gpu::Place here = gpu::place_of(*cuda, base + whole.offset), there = gpu::place_of(*cuda, end);
            if (here.where >= gpu::Where::device || there.where >= gpu::Where::device) {
                const bool ours = here.where != gpu::Where::foreign && there.where != gpu::Where::foreign;
                if (!gpu::copy(*cuda, whole, base, end, here, there, D == Direction::unpack)) {
                    if (ours && !knows_gpus()) return refused();
                    return std::nullopt;
                }
                *position += static_cast<Size>(whole.bytes());
                return 0;
            }
        }
        if (!type->worth_on_host) return std::nullopt;
        copy<D>(whole, base, end, 0, whole.bytes());
        *position += static_cast<Size>(whole.bytes());
        return 0;
    } catch (const Overflow&) {
        return std::nullopt;
    }
}

// The same for a call and its counter; a type that is left alone is known to be from then on.
template <Direction D, class Size>
inline std::optional<int> counted_call(Counter& counter, void* strided, Count count, Handle datatype, void* packed, Size room, Size* position) {
    const LeftAlone::Key key = LeftAlone::key_of(datatype); // of before the question: CUDA may come meanwhile
    Type* const type = enabled ? types.get(datatype) : nullptr;
    std::optional<int> code;
    if (!type || left_alone(*type)) left.add(key);
    else code = served<D>(strided, count, type, packed, room, position);
    counter.note(code.has_value());
    return code;
}

// The calls for types that are not known to be left alone: out of line and with the arguments where they are, so that the others need no frame.
template <auto& original, class Size>
[[gnu::noinline]] int pack_known(const void* from, Size count, Handle datatype, void* to, Size room, Size* position, Handle comm) {
    if (const auto code = counted_call<Direction::pack>(packs, const_cast<void*>(from), count, datatype, to, room, position)) return *code;
    return original(from, count, datatype, to, room, position, comm);
}

template <auto& original, class Size>
[[gnu::noinline]] int unpack_known(const void* from, Size room, Size* position, void* to, Size count, Handle datatype, Handle comm) {
    if (const auto code = counted_call<Direction::unpack>(unpacks, to, count, datatype, const_cast<void*>(from), room, position)) return *code;
    return original(from, room, position, to, count, datatype, comm);
}

// What is counted, in the order of warpwright_counts.
inline const std::pair<const char*, const Counter*> counted[] = {
    {"MPI_Pack", &packs}, {"MPI_Unpack", &unpacks}, {"send", &sends}, {"receive", &receives}, {"persistent", &persistents},
    {"all-to-all", &all_to_alls}, {"neighbour", &neighbours}, {"ring", &by_ring}};

// With WARPWRIGHT_MPI_REPORT each process says at its end what was served: on the standard error, or as a line of the file that it names.
inline void report() {
    const char* where = std::getenv("WARPWRIGHT_MPI_REPORT");
    if (!where) return;
    std::string line = "warpwright.mpi: served and forwarded:";
    for (const auto& [name, counter] : counted)
        line.append(" ").append(name).append(" ").append(std::to_string(counter->served)).append("+").append(std::to_string(counter->forwarded));
    line += "\n";
    std::FILE* file = where[0] == '/' ? std::fopen(where, "a") : nullptr;
    std::fwrite(line.data(), 1, line.size(), file ? file : stderr); // one write: processes share the file
    if (file) std::fclose(file);
}

} // namespace warpwright::mpi

using namespace warpwright::mpi;

WARPWRIGHT_API int MPI_Type_commit(Handle* handle) {
    const int code = type_commit(handle);
    if (!code && enabled) {
        types.add(*handle);
        gpu::driver(); // a contiguous type may be the first that a message has: whether CUDA is there is known by then
    }
    return code;
}

WARPWRIGHT_API int MPI_Type_free(Handle* handle) {
    if (enabled && handle) types.forget(*handle);
    return type_free(handle);
}

WARPWRIGHT_API int MPI_Finalize() {
    orphans.poll(true);
    alone.end();
    rings.end();
    report();
    return finalize_();
}

#define WARPWRIGHT_PACKS(suffix, Size, pack, unpack) \
    WARPWRIGHT_API int MPI_Pack##suffix(const void* from, Size count, Handle datatype, void* to, Size room, Size* position, Handle comm) { \
        if (const auto call = passed(pack, datatype, packs)) return call(from, count, datatype, to, room, position, comm); \
        return pack_known<pack>(from, count, datatype, to, room, position, comm); \
    } \
    WARPWRIGHT_API int MPI_Unpack##suffix(const void* from, Size room, Size* position, void* to, Size count, Handle datatype, Handle comm) { \
        if (const auto call = passed(unpack, datatype, unpacks)) return call(from, room, position, to, count, datatype, comm); \
        return unpack_known<unpack>(from, room, position, to, count, datatype, comm); \
    }

WARPWRIGHT_PACKS(, int, pack, unpack)
#ifdef WARPWRIGHT_LARGE
WARPWRIGHT_PACKS(_c, Count, pack_c, unpack_c)
#endif

// The layout of one object of a datatype, to be freed by warpwright_free; null for a type that is left to the library.
WARPWRIGHT_API Layout* warpwright_of_datatype(Handle datatype, Bytes* extent) {
    try {
        const auto found = described(datatype);
        if (!found) return nullptr;
        *extent = found->extent;
        return new Layout(found->layout);
    } catch (const Overflow&) {
        return nullptr;
    }
}

// Read a datatype and forget it: what a commit costs, for measurements. Returns 0.
WARPWRIGHT_API int warpwright_read_datatype(Handle datatype, Bytes* extent) {
    const auto found = described(datatype);
    *extent = found ? found->extent : 0;
    return !found;
}

// How `count` objects of a datatype go as a message of host memory, 1 packed, and what is known of it: uses, trials, the library's time and ours (us),
// whether the library's bytes differed. -1 for a type that is left to the library.
WARPWRIGHT_API int warpwright_choice(Handle datatype, Count count, double* known) {
    Type* type = types.get(datatype);
    if (type->forwarded || !type->layout.node || count <= 0) return -1;
    const Bytes bytes = type->layout.bytes() * count;
    if (Seen* seen = type->choice.find(bytes)) {
        seen->add(settled.forget(datatype));
        const auto [uses, trials, us, differs] = seen->known();
        const double all[] = {static_cast<double>(uses), static_cast<double>(trials), us.library_us, us.ours_us, static_cast<double>(differs)};
        std::copy(std::begin(all), std::end(all), known);
    }
    return type->choice.packs(bytes, type->block);
}

// One trial, whatever is known: the library's time and ours (us); 1 where there was none, 2 where the library's bytes differed.
WARPWRIGHT_API int warpwright_try(Handle datatype, int count, void* base, int ours_first, double* times) {
    Type* type = types.get(datatype);
    if (type->forwarded || !type->layout.node || !type->tried || count <= 0) return 1;
    const auto seen = alone.times(datatype, count, type->whole(count), static_cast<char*>(base), ours_first);
    if (!seen) return 1;
    times[0] = seen->us.library_us, times[1] = seen->us.ours_us;
    return seen->same ? 0 : 2;
}

// Served and forwarded calls of each kind; returns the number of kinds.
WARPWRIGHT_API int warpwright_counts(std::uint64_t* counts) {
    for (const auto& [name, counter] : counted) *counts++ = counter->served, *counts++ = counter->forwarded;
    return static_cast<int>(std::size(counted));
}
