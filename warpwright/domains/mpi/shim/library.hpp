// The MPI library behind the shim: its functions by name, looked up when first needed.
#pragma once
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "abi.hpp"

namespace warpwright::mpi {

// RTLD_NEXT sees nothing when the library was opened RTLD_LOCAL, as mpi4py does: then it is asked for by the name it is loaded under.
inline void* symbol(const char* name) {
    if (void* next = dlsym(RTLD_NEXT, name)) return next;
    void* library = dlopen(MPI_SONAME, RTLD_NOLOAD | RTLD_LAZY);
    return library ? dlsym(library, name) : nullptr;
}

// The library's own object by name, as everybody sees it: the linker moves one that a C program names into the program (a copy relocation), and what
// the library was built with is not the object then.
inline void* object(const char* name) {
    void* moved = dlsym(RTLD_DEFAULT, name);
    return moved ? moved : symbol(name);
}

// A library of the standard ABI and one of its own would each misread the other's handles; MPI 5 has a call that tells them apart.
inline void check_library() {
    static const bool right = [] {
        const auto query = reinterpret_cast<int (*)(int*, int*)>(symbol("MPI_Abi_get_version"));
        int major = -1, minor = -1;
        return (query && !query(&major, &minor) && major > 0) == mpi_constant::standard;
    }();
    if (right) return;
    std::fprintf(stderr, "warpwright.mpi: expected the library %s, saw one of another binary interface (docs/mpi.md: --library)\n", MPI_SONAME);
    std::abort();
}

template <class Signature>
class Original;

template <class... Arguments>
class Original<int(Arguments...)> {
public:
    constexpr explicit Original(const char* name) : name_(name) {}
    int operator()(Arguments... arguments) {
        auto function = function_.load(std::memory_order_relaxed);
        if (__builtin_expect(!function, 0)) function = find();
        return function(arguments...);
    }
    // The function where it was called before, else null: for a call that is passed on without a frame of its own.
    auto known() const { return function_.load(std::memory_order_relaxed); }
    bool exists() { return function_.load(std::memory_order_relaxed) || symbol(name_); }

private:
    using Function = int (*)(Arguments...);
    [[gnu::noinline, gnu::cold]] Function find() {
        auto function = reinterpret_cast<Function>(symbol(name_));
        if (!function) {
            std::fprintf(stderr, "warpwright.mpi: expected %s in %s, saw no MPI library with it loaded\n", name_, MPI_SONAME);
            std::abort();
        }
        check_library();
        function_.store(function, std::memory_order_relaxed);
        return function;
    }
    const char* name_;
    std::atomic<Function> function_{nullptr};
};

inline Handle handle_of(const Predefined& handle) {
    return (Handle)(handle.object ? reinterpret_cast<std::intptr_t>(object(handle.object)) : handle.number); // C's cast: to a pointer or to an int
}

inline Handle packed_handle() {
    static const Handle handle = handle_of(mpi_constant::packed);
    return handle;
}
inline Handle null_request_handle() {
    static const Handle handle = handle_of(mpi_constant::null_request);
    return handle;
}
inline Handle world_handle() {
    static const Handle handle = handle_of(mpi_constant::world);
    return handle;
}
inline Handle self_handle() {
    static const Handle handle = handle_of(mpi_constant::self);
    return handle;
}
inline Handle null_comm_handle() {
    static const Handle handle = handle_of(mpi_constant::null_comm);
    return handle;
}

inline const int* unweighted_place() {
    constexpr Predefined place = mpi_constant::unweighted;
    if (!place.object) return reinterpret_cast<const int*>(place.number);
    const auto* variable = static_cast<int* const*>(object(place.object));
    return variable ? *variable : nullptr;
}

// Whether the library itself takes memory of a GPU, as it says.
inline bool knows_gpus() {
    static const bool says = [] {
        const auto query = reinterpret_cast<int (*)()>(symbol("MPIX_Query_cuda_support"));
        return query && query() == 1;
    }();
    return says;
}

inline Original<int(Handle, int*, int*, int*, int*)> type_get_envelope("MPI_Type_get_envelope");
inline Original<int(Handle, int, int, int, int*, Address*, Handle*)> type_get_contents("MPI_Type_get_contents");
inline Original<int(Handle, Count*, Count*, Count*, Count*, int*)> type_get_envelope_c("MPI_Type_get_envelope_c");
inline Original<int(Handle, Count, Count, Count, Count, int*, Address*, Count*, Handle*)> type_get_contents_c("MPI_Type_get_contents_c");
inline Original<int(Handle, Count*, Count*)> type_get_extent("MPI_Type_get_extent_x");
inline Original<int(Handle, Count*)> type_size("MPI_Type_size_x");
inline Original<int(Handle*)> type_free("MPI_Type_free");
inline Original<int(Handle, int)> comm_call_errhandler("MPI_Comm_call_errhandler");

// An error of ours is the library's own: its error handler of MPI_COMM_WORLD decides whether the program ends here or sees the code.
inline int raised(int code) {
    comm_call_errhandler(world_handle(), code);
    return code;
}

// The GPU refused bytes that no library without a knowledge of GPUs may touch.
inline int refused() {
    std::fprintf(stderr, "warpwright.mpi: the GPU refused to pack or unpack a message (docs/mpi.md)\n");
    return raised(mpi_constant::error_other);
}

} // namespace warpwright::mpi
