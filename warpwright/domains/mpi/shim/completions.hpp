// Every call that may complete a request. Where none of its requests is staged here it is forwarded as it is.
#pragma once
#include "requests.hpp"

namespace warpwright::mpi {

inline Original<int(Handle*, Status*)> wait_("MPI_Wait");
inline Original<int(Handle*, int*, Status*)> test_("MPI_Test");
inline Original<int(int, Handle*, Status*)> waitall_("MPI_Waitall");
inline Original<int(int, Handle*, int*, Status*)> testall_("MPI_Testall");
inline Original<int(int, Handle*, int*, Status*)> waitany_("MPI_Waitany");
inline Original<int(int, Handle*, int*, int*, Status*)> testany_("MPI_Testany");
inline Original<int(int, Handle*, int*, int*, Status*)> waitsome_("MPI_Waitsome");
inline Original<int(int, Handle*, int*, int*, Status*)> testsome_("MPI_Testsome");
inline Original<int(Handle, int*, Status*)> request_get_status_("MPI_Request_get_status");
inline Original<int(Handle*)> request_free_("MPI_Request_free");
inline Original<int(Handle*)> start_("MPI_Start");
inline Original<int(int, Handle*)> startall_("MPI_Startall");
inline Original<int()> finalize_("MPI_Finalize");

// Requests that the program has freed while their bytes were on their way; they are completed by and by.
class Orphans {
public:
    void add(Handle request, Operation* operation) {
        const std::lock_guard lock(guard_);
        orphans_.push_back({request, operation});
        count_ = orphans_.size();
    }

    bool none() const { return count_.load(std::memory_order_relaxed) == 0; }

    void poll(bool until_done = false) {
        if (none()) return;
        const std::lock_guard lock(guard_);
        for (auto at = orphans_.begin(); at != orphans_.end();) {
            int done = 1;
            Status status;
            const int code = until_done ? wait_(&at->first, &status) : test_(&at->first, &done, &status);
            if (!code && !done) {
                ++at;
                continue;
            }
            if (!code) deliver(*at->second, status);
            if (at->second->persistent) request_free_(&at->first); // the others are gone with their completion
            Requests::drop(at->second);
            at = orphans_.erase(at);
        }
        count_ = orphans_.size();
    }

private:
    std::mutex guard_;
    std::vector<std::pair<Handle, Operation*>> orphans_;
    std::atomic<std::size_t> count_{0};
};

inline Orphans orphans;

// All that a call has completed, `index(j)` being the request of status j; `code` is the library's. Returns the call's code: where bytes could not be
// delivered the statuses tell which.
template <class Index>
int settle(Batch& batch, int count, Status* seen, int code, Index index) {
    Arrivals arrivals;
    for (int j = 0; j < count; ++j)
        if (Operation* operation = batch.operation(static_cast<std::size_t>(index(j))); operation && !(code && seen[j].error)) arrivals.add(*operation, seen[j]);
    arrivals.move();
    std::vector<int> failed;
    for (int j = 0; j < count; ++j) {
        const auto i = static_cast<std::size_t>(index(j));
        const int error = code ? seen[j].error : 0;
        if (error == mpi_constant::error_pending) continue;
        if (error) {
            batch.fail(i);
        } else if (const int refused = batch.complete(i, seen[j])) {
            failed.resize(static_cast<std::size_t>(count));
            failed[static_cast<std::size_t>(j)] = refused;
        }
    }
    if (failed.empty()) return code;
    for (int j = 0; j < count; ++j)
        if (!code || failed[static_cast<std::size_t>(j)]) seen[j].error = failed[static_cast<std::size_t>(j)];
    return mpi_constant::error_in_status;
}

} // namespace warpwright::mpi

using namespace warpwright::mpi;

namespace warpwright::mpi {

// The library's function where no request is staged, to be called without a frame of ours; null also at the first call.
template <class Call>
[[gnu::always_inline]] inline auto passed(const Call& original) {
    const auto function = original.known();
    return function && requests.none() ? function : nullptr;
}

[[gnu::noinline]] inline int wait(Handle* request, Status* status) {
    Batch batch(1, request);
    if (!batch) return wait_(request, status);
    Status* seen = batch.statuses(status);
    const int code = wait_(request, seen);
    if (!code) return batch.complete(0, *seen);
    batch.fail(0);
    return code;
}

[[gnu::noinline]] inline int test(Handle* request, int* flag, Status* status) {
    orphans.poll();
    Batch batch(1, request);
    if (!batch) return test_(request, flag, status);
    Status* seen = batch.statuses(status);
    const int code = test_(request, flag, seen);
    if (code) batch.fail(0);
    return !code && *flag ? batch.complete(0, *seen) : code;
}

[[gnu::noinline]] inline int waitall(int count, Handle* handles, Status* statuses) {
    if (count <= 0) return waitall_(count, handles, statuses);
    Batch batch(count, handles);
    if (!batch) return waitall_(count, handles, statuses);
    Status* seen = batch.statuses(statuses);
    const int code = waitall_(count, handles, seen);
    if (code && code != mpi_constant::error_in_status) {
        batch.fail_gone();
        return code;
    }
    return settle(batch, count, seen, code, [](int i) { return i; });
}

} // namespace warpwright::mpi

WARPWRIGHT_API int MPI_Wait(Handle* request, Status* status) {
    if (const auto call = passed(wait_)) return call(request, status);
    return warpwright::mpi::wait(request, status);
}

WARPWRIGHT_API int MPI_Test(Handle* request, int* flag, Status* status) {
    if (orphans.none())
        if (const auto call = passed(test_)) return call(request, flag, status);
    return warpwright::mpi::test(request, flag, status);
}

WARPWRIGHT_API int MPI_Waitall(int count, Handle* handles, Status* statuses) {
    if (const auto call = passed(waitall_)) return call(count, handles, statuses);
    return warpwright::mpi::waitall(count, handles, statuses);
}

WARPWRIGHT_API int MPI_Testall(int count, Handle* handles, int* flag, Status* statuses) {
    if (requests.none() || count <= 0) return testall_(count, handles, flag, statuses);
    Batch batch(count, handles);
    if (!batch) return testall_(count, handles, flag, statuses);
    Status* seen = batch.statuses(statuses);
    const int code = testall_(count, handles, flag, seen);
    if (code && code != mpi_constant::error_in_status) batch.fail_gone();
    if ((code && code != mpi_constant::error_in_status) || (!code && !*flag)) return code;
    return settle(batch, count, seen, code, [](int i) { return i; });
}

// The one request that a call has completed, or at which it failed.
inline int any(Batch& batch, int code, int index, Status& seen) {
    if (!code) return index == mpi_constant::undefined ? code : batch.complete(static_cast<std::size_t>(index), seen);
    if (index != mpi_constant::undefined) batch.fail(static_cast<std::size_t>(index));
    batch.fail_gone();
    return code;
}

WARPWRIGHT_API int MPI_Waitany(int count, Handle* handles, int* index, Status* status) {
    if (requests.none() || count <= 0) return waitany_(count, handles, index, status);
    Batch batch(count, handles);
    if (!batch) return waitany_(count, handles, index, status);
    Status* seen = batch.statuses(status);
    *index = mpi_constant::undefined; // an error may leave it as it was
    const int code = waitany_(count, handles, index, seen);
    return any(batch, code, *index, *seen);
}

WARPWRIGHT_API int MPI_Testany(int count, Handle* handles, int* index, int* flag, Status* status) {
    if (requests.none() || count <= 0) return testany_(count, handles, index, flag, status);
    Batch batch(count, handles);
    if (!batch) return testany_(count, handles, index, flag, status);
    Status* seen = batch.statuses(status);
    *index = mpi_constant::undefined;
    const int code = testany_(count, handles, index, flag, seen);
    return any(batch, code, *index, *seen);
}

inline int some(Original<int(int, Handle*, int*, int*, Status*)>& original, int count, Handle* handles, int* done, int* indices, Status* statuses) {
    if (requests.none() || count <= 0) return original(count, handles, done, indices, statuses);
    Batch batch(count, handles);
    if (!batch) return original(count, handles, done, indices, statuses);
    Status* seen = batch.statuses(statuses);
    const int code = original(count, handles, done, indices, seen);
    if (code && code != mpi_constant::error_in_status) batch.fail_gone();
    if ((code && code != mpi_constant::error_in_status) || *done == mpi_constant::undefined) return code;
    return settle(batch, *done, seen, code, [&](int j) { return indices[j]; });
}

WARPWRIGHT_API int MPI_Waitsome(int count, Handle* handles, int* done, int* indices, Status* statuses) {
    return some(waitsome_, count, handles, done, indices, statuses);
}

WARPWRIGHT_API int MPI_Testsome(int count, Handle* handles, int* done, int* indices, Status* statuses) {
    return some(testsome_, count, handles, done, indices, statuses);
}

// The request stays; its bytes are delivered, because the program may use them from now on.
WARPWRIGHT_API int MPI_Request_get_status(Handle request, int* flag, Status* status) {
    Operation* operation = requests.take(request);
    if (!operation) return request_get_status_(request, flag, status);
    Status own, *seen = status == mpi_constant::status_ignore ? &own : status;
    int code = request_get_status_(request, flag, seen);
    if (!code && *flag) code = deliver(*operation, *seen);
    requests.add(request, operation);
    return code;
}

#ifdef WARPWRIGHT_MANY_STATUSES
// The same for many requests (MPI 4.1).
inline Original<int(int, const Handle*, int*, Status*)> get_status_all_("MPI_Request_get_status_all");
inline Original<int(int, const Handle*, int*, int*, Status*)> get_status_any_("MPI_Request_get_status_any"), get_status_some_("MPI_Request_get_status_some");

WARPWRIGHT_API int MPI_Request_get_status_all(int count, const Handle* handles, int* flag, Status* statuses) {
    if (requests.none() || count <= 0) return get_status_all_(count, handles, flag, statuses);
    Batch batch(count, handles);
    Status* seen = batch.statuses(statuses);
    int code = get_status_all_(count, handles, flag, seen);
    for (int i = 0; !code && *flag && i < count; ++i) code = batch.show(static_cast<std::size_t>(i), seen[i]);
    return code;
}

WARPWRIGHT_API int MPI_Request_get_status_any(int count, const Handle* handles, int* index, int* flag, Status* status) {
    if (requests.none() || count <= 0) return get_status_any_(count, handles, index, flag, status);
    Batch batch(count, handles);
    Status* seen = batch.statuses(status);
    const int code = get_status_any_(count, handles, index, flag, seen);
    return !code && *flag && *index != mpi_constant::undefined ? batch.show(static_cast<std::size_t>(*index), *seen) : code;
}

WARPWRIGHT_API int MPI_Request_get_status_some(int count, const Handle* handles, int* done, int* indices, Status* statuses) {
    if (requests.none() || count <= 0) return get_status_some_(count, handles, done, indices, statuses);
    Batch batch(count, handles);
    Status* seen = batch.statuses(statuses);
    int code = get_status_some_(count, handles, done, indices, seen);
    for (int j = 0; !code && j < *done; ++j) code = batch.show(static_cast<std::size_t>(indices[j]), seen[j]); // none where `done` is MPI_UNDEFINED
    return code;
}
#endif

WARPWRIGHT_API int MPI_Request_free(Handle* request) {
    orphans.poll();
    Operation* operation = requests.take(*request);
    if (!operation) return request_free_(request);
    if (operation->active) {
        orphans.add(*request, operation);
        *request = null_request_handle();
        return 0;
    }
    Requests::drop(operation);
    return request_free_(request);
}

// Before a start: the bytes of all sends are packed; false where the GPU refused.
inline bool prepare(int count, Handle* handles) {
    Batch batch(count, handles);
    if (!batch) return true;
    Together together;
    std::vector<const Staged*> alone, grouped;
    for (int i = 0; i < count; ++i) {
        Operation* operation = batch.operation(static_cast<std::size_t>(i));
        if (!operation) continue;
        operation->active = true;
        operation->unpacked = operation->moved = false;
        const Staged& staged = operation->staged;
        if (operation->receive) continue;
        const bool grouping = staged.device >= 0 && staged.buffer->kind == Memory::pinned && together.add(staged, staged.layout, staged.buffer->memory);
        (grouping ? grouped : alone).push_back(&staged);
    }
    const auto pack = [](const Staged* staged) { return staged->pack(); };
    return std::ranges::all_of(alone, pack) && (together.run(false) || std::ranges::all_of(grouped, pack));
}

WARPWRIGHT_API int MPI_Start(Handle* request) {
    if (requests.none()) return start_(request);
    return prepare(1, request) ? start_(request) : refused();
}

WARPWRIGHT_API int MPI_Startall(int count, Handle* handles) {
    if (requests.none() || count <= 0) return startall_(count, handles);
    return prepare(count, handles) ? startall_(count, handles) : refused();
}
