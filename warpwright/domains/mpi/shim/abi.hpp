// What the shim needs of each MPI library's binary interface, written down here so that no MPI has to be installed to build it.
//
// Handles are opaque. Numbers come from the libraries' public headers: Open MPI 4.1 to 5.0, MPICH 4 and 5 (and what shares its ABI).
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(WARPWRIGHT_OPENMPI)
using Handle = void*;
struct Status {
    int source, tag, error, cancelled;
    std::size_t count;
};
#define MPI_SONAME "libmpi.so.40"
namespace mpi_constant {
constexpr int proc_null = -2, any_source = -1, undefined = -32766;
constexpr int error_truncate = 15, error_other = 16, error_in_status = 18, error_pending = 19;
constexpr int order_c = 0, distribute_block = 0, distribute_cyclic = 1, distribute_none = 2, default_argument = -1;
constexpr int cartesian = 1, graph = 2, distributed_graph = 3;
inline Status* const status_ignore = nullptr;
inline void* const in_place = reinterpret_cast<void*>(1);
enum Combiner { named = 0, duplicate, contiguous, vector, hvector = 5, indexed, hindexed = 8, indexed_block, structure = 11, subarray, darray,
                f90_real, f90_complex, f90_integer, resized, hindexed_block };
}
#elif defined(WARPWRIGHT_MPICH)
using Handle = int;
struct Status {
    int count_low, count_high, source, tag, error;
};
#define MPI_SONAME "libmpi.so.12"
inline constexpr Handle packed_type = 0x4c00010f, null_request = 0x2c000000, world = 0x44000000, null_comm = 0x04000000;
namespace mpi_constant {
constexpr int proc_null = -1, any_source = -2, undefined = -32766;
constexpr int error_truncate = 14, error_other = 15, error_in_status = 17, error_pending = 18;
constexpr int order_c = 56, distribute_block = 121, distribute_cyclic = 122, distribute_none = 123, default_argument = -49767;
constexpr int graph = 1, cartesian = 2, distributed_graph = 3;
inline Status* const status_ignore = reinterpret_cast<Status*>(1);
inline void* const in_place = reinterpret_cast<void*>(-1);
enum Combiner { named = 1, duplicate, contiguous, vector, hvector = 6, indexed, hindexed = 9, indexed_block, structure = 12, subarray, darray,
                f90_real, f90_complex, f90_integer, resized, hindexed_block };
}
#else
#error "define WARPWRIGHT_OPENMPI or WARPWRIGHT_MPICH"
#endif

using Address = std::intptr_t; // MPI_Aint
using Count = std::int64_t;    // MPI_Count
