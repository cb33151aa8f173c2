// Time single calls of a C function from call to return: no interpreter in between.
#include <chrono>
#include <cstdint>

using Function = long (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);

// `reset` (MPI_Pack's position) is set to 0 before each call; `ns` gets the time of each of `count` groups of `inner` calls, per call.
// Returns the number of calls that did not return 0.
extern "C" long time_calls(Function function, const std::uint64_t* a, std::int64_t* reset, int inner, int count, double* ns) {
    long failed = 0;
    for (int i = 0; i < count; ++i) {
        const auto start = std::chrono::steady_clock::now();
        for (int j = 0; j < inner; ++j) {
            *reset = 0;
            failed += static_cast<int>(function(a[0], a[1], a[2], a[3], a[4], a[5], a[6])) != 0;
        }
        ns[i] = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / inner;
    }
    return failed;
}

using Copy = int (*)(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, void* stream);
using Wait = int (*)(void* stream);

// The least that a copy on a GPU takes from call to return: cuMemcpyAsync, cuStreamSynchronize.
extern "C" long copy_and_wait(Copy copy, Wait wait, std::uint64_t to, std::uint64_t from, std::uint64_t bytes, std::uint64_t, std::uint64_t) {
    void* stream = reinterpret_cast<void*>(1);
    return copy(to, from, bytes, stream) || wait(stream);
}

using Send = int (*)(std::uint64_t base, int count, std::uint64_t datatype, int peer, int tag, std::uint64_t comm);
using Receive = int (*)(std::uint64_t base, int count, std::uint64_t datatype, int peer, int tag, std::uint64_t comm, void* status);

// `ns` gets half the time of each of `rounds` there and back; process 0 begins. Returns the number of calls that did not return 0.
extern "C" long ping_pong(Send send, Receive receive, std::uint64_t base, std::uint64_t datatype, std::uint64_t comm, int rank, int rounds, double* ns) {
    alignas(16) char status[64];
    long failed = 0;
    for (int i = 0; i < rounds; ++i) {
        const auto start = std::chrono::steady_clock::now();
        for (int turn = 0; turn < 2; ++turn)
            failed += (turn == rank ? send(base, 1, datatype, 1 - rank, 7, comm) : receive(base, 1, datatype, 1 - rank, 7, comm, status)) != 0;
        ns[i] = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 2;
    }
    return failed;
}
