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

// Serve a pack or unpack of `count` objects: the call's code; nothing where it is the library's: errors too, which it reports in its own way.
template <Direction D, class Size>
__attribute__((noinline)) std::optional<int> served(void* strided, Count count, Type* type, void* packed, Size room, Size* position) {
    if (left_alone(*type) || count <= 0 || !packed || !position || *position < 0) return std::nullopt;
    try {
        const Layout whole = type->whole(count);
        if (whole.bytes() > room - *position) return std::nullopt;
        char *base = static_cast<char*>(strided), *end = static_cast<char*>(packed) + *position;
        if (gpu::avoided()) return std::nullopt;
        if (gpu::Driver* cuda = gpu::driver()) {
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

// The same for a call and its counter.
template <Direction D, class Size>
inline std::optional<int> counted_call(Counter& counter, void* strided, Count count, Handle datatype, void* packed, Size room, Size* position) {
    std::optional<int> code;
    if (!passed_on(datatype)) code = served<D>(strided, count, types.get(datatype), packed, room, position);
    counter.note(code.has_value());
    return code;
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
    rings.end();
    report();
    return finalize_();
}

WARPWRIGHT_API int MPI_Pack(const void* from, int count, Handle datatype, void* to, int room, int* position, Handle comm) {
    if (const auto code = counted_call<Direction::pack>(packs, const_cast<void*>(from), count, datatype, to, room, position)) return *code;
    return pack(from, count, datatype, to, room, position, comm);
}

WARPWRIGHT_API int MPI_Unpack(const void* from, int room, int* position, void* to, int count, Handle datatype, Handle comm) {
    if (const auto code = counted_call<Direction::unpack>(unpacks, to, count, datatype, const_cast<void*>(from), room, position)) return *code;
    return unpack(from, room, position, to, count, datatype, comm);
}

#ifdef WARPWRIGHT_LARGE
WARPWRIGHT_API int MPI_Pack_c(const void* from, Count count, Handle datatype, void* to, Count room, Count* position, Handle comm) {
    if (const auto code = counted_call<Direction::pack>(packs, const_cast<void*>(from), count, datatype, to, room, position)) return *code;
    return pack_c(from, count, datatype, to, room, position, comm);
}

WARPWRIGHT_API int MPI_Unpack_c(const void* from, Count room, Count* position, void* to, Count count, Handle datatype, Handle comm) {
    if (const auto code = counted_call<Direction::unpack>(unpacks, to, count, datatype, const_cast<void*>(from), room, position)) return *code;
    return unpack_c(from, room, position, to, count, datatype, comm);
}
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

// Served and forwarded calls of each kind; returns the number of kinds.
WARPWRIGHT_API int warpwright_counts(std::uint64_t* counts) {
    for (const auto& [name, counter] : counted) *counts++ = counter->served, *counts++ = counter->forwarded;
    return static_cast<int>(std::size(counted));
}
