// What the shim needs of each MPI library's binary interface, written down here so that no MPI has to be installed to build it.
//
// Handles are opaque. Numbers come from the libraries' public headers: Open MPI 4.1 to 5.0, MPICH 4 and 5 (and what shares its ABI), and the standard
// ABI of MPI 5.0 (chapter 20). For any other library `warpwright mpi build-shim` writes this file anew, by a program that its compiler wrapper builds.
#pragma once
#include <cstddef>
#include <cstdint>

// A predefined handle: a number, or the address of one of the library's own objects. MPI_UNWEIGHTED: a number, or a variable that holds it.
struct Predefined {
    const char* object;
    std::intptr_t number;
};

#if defined(WARPWRIGHT_OPENMPI)
using Handle = void*;
struct Status {
    int source, tag, error, cancelled;
    std::size_t count;
};
#define MPI_SONAME "libmpi.so.40"
namespace mpi_constant {
constexpr bool standard = false;
constexpr Predefined packed{"ompi_mpi_packed", 0}, null_request{"ompi_request_null", 0}, world{"ompi_mpi_comm_world", 0};
constexpr Predefined self{"ompi_mpi_comm_self", 0}, null_comm{"ompi_mpi_comm_null", 0};
constexpr Predefined unweighted{nullptr, 2};
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
namespace mpi_constant {
constexpr bool standard = false;
constexpr Predefined packed{nullptr, 0x4c00010f}, null_request{nullptr, 0x2c000000}, world{nullptr, 0x44000000};
constexpr Predefined self{nullptr, 0x44000001}, null_comm{nullptr, 0x04000000};
constexpr Predefined unweighted{"MPI_UNWEIGHTED", 0};
constexpr int proc_null = -1, any_source = -2, undefined = -32766;
constexpr int error_truncate = 14, error_other = 15, error_in_status = 17, error_pending = 18;
constexpr int order_c = 56, distribute_block = 121, distribute_cyclic = 122, distribute_none = 123, default_argument = -49767;
constexpr int graph = 1, cartesian = 2, distributed_graph = 3;
inline Status* const status_ignore = reinterpret_cast<Status*>(1);
inline void* const in_place = reinterpret_cast<void*>(-1);
enum Combiner { named = 1, duplicate, contiguous, vector, hvector = 6, indexed, hindexed = 9, indexed_block, structure = 12, subarray, darray,
                f90_real, f90_complex, f90_integer, resized, hindexed_block };
}
#elif defined(WARPWRIGHT_MPIABI)
using Handle = void*;
struct Status {
    int source, tag, error, internal[5];
};
#define MPI_SONAME "libmpi_abi.so.1"
namespace mpi_constant {
constexpr bool standard = true;
constexpr Predefined packed{nullptr, 0x207}, null_request{nullptr, 0x180}, world{nullptr, 0x101};
constexpr Predefined self{nullptr, 0x102}, null_comm{nullptr, 0x100};
constexpr Predefined unweighted{nullptr, 10};
constexpr int proc_null = -3, any_source = -1, undefined = -32766;
constexpr int error_truncate = 15, error_other = 16, error_in_status = 19, error_pending = 18;
constexpr int order_c = 12, distribute_block = 17, distribute_cyclic = 18, distribute_none = 16, default_argument = 19;
constexpr int cartesian = 211, graph = 212, distributed_graph = 213;
inline Status* const status_ignore = nullptr;
inline void* const in_place = reinterpret_cast<void*>(1);
enum Combiner { named = 101, duplicate, contiguous, vector, hvector, indexed, hindexed, indexed_block, hindexed_block, structure, subarray, darray,
                f90_real, f90_complex, f90_integer, resized };
}
#else
#error "define WARPWRIGHT_OPENMPI, WARPWRIGHT_MPICH or WARPWRIGHT_MPIABI"
#endif

using Address = std::intptr_t; // MPI_Aint
using Count = std::int64_t;    // MPI_Count
