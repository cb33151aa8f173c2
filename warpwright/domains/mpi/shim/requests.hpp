// Requests whose bytes are staged. The request itself is the library's own, so that calls which are not interposed work on it too; here it is only
// known by its handle. A completion call takes what it knows of its requests out of the table before the library may reuse a handle, and puts
// back what did not complete.
#pragma once
#include <memory>
#include <unordered_map>

#include "rings.hpp"

namespace warpwright::mpi {

inline Original<int(const Status*, Handle, Count*)> get_elements("MPI_Get_elements_x");
inline Original<int(const Status*, int*)> test_cancelled("MPI_Test_cancelled");

struct Operation {
    Staged staged;
    bool receive = false;
    bool persistent = false;
    bool active = true;    // false: a persistent request that is not started, or whose end was seen
    bool unpacked = false; // MPI_Request_get_status has shown the end already
    bool whole = false;    // a collective's: all its bytes arrive, and its status does not count them
    bool moved = false;    // its bytes were unpacked together with others'
    Count in_ring = -1;    // the bytes that its header stood for: what its status counts, however often it is asked for
    Staged sent{};         // of a collective: the side that is sent, where both are staged
    std::shared_ptr<void> kept{};
};

// What arrived goes where it belongs; nothing arrived in a cancelled receive. Returns the error of a message that cannot be unpacked: the library has
// handed it over, so that it cannot be received again.
inline int deliver(Operation& operation, Status& status) {
    if (!operation.active) return 0;
    if (operation.unpacked) {
        if (operation.in_ring >= 0) status_set_elements(&status, packed_handle(), operation.in_ring);
        return 0;
    }
    int cancelled = 0;
    if (!operation.receive) {
        const bool sent = rings.sent(operation.staged);
        if (operation.staged.remote) test_cancelled(&status, &cancelled);
        if (cancelled) operation.staged.withdraw();
        return sent ? 0 : refused();
    }
    Count received = operation.staged.bytes();
    if (!operation.whole) {
        test_cancelled(&status, &cancelled);
        if (cancelled || get_elements(&status, packed_handle(), &received)) return 0;
    }
    operation.unpacked = true;
    Header header;
    if (received == header_bytes && !operation.whole && rings.on() && rings.header_of(operation.staged, header)) {
        operation.in_ring = static_cast<Count>(header.bytes);
        return rings.take(operation.staged, header, status, operation.moved);
    }
    if (!operation.staged.buffer) return 0; // only looked at
    return operation.moved || operation.staged.unpack(received) ? 0 : refused();
}

// Objects of one GPU that are packed or unpacked in as few launches as their number allows, and awaited once. Where that fails, or there is but one,
// nothing has been done, and each goes its own way.
class Together {
public:
    // The packed bytes lie where a kernel of this device reaches them.
    bool add(const Staged& staged, const Layout& part, char* packed) {
        gpu::Driver& cuda = *gpu::driver();
        if (!part.node || (device_ >= 0 && staged.device != device_)) return false;
        const gpu::Place here = gpu::place_of(cuda, staged.base + part.offset);
        if (here.where != gpu::Where::device || here.device != staged.device) return false;
        device_ = here.device;
        gpu::cut(part.node, staged.base + part.offset, packed, pieces_);
        ++members_;
        return true;
    }

    bool run(bool unpack) {
        if (members_ < 2) return false;
        const gpu::Use use(*gpu::driver(), device_);
        return use && gpu::run(*gpu::driver(), *use, pieces_, unpack);
    }

private:
    int device_ = -1, members_ = 0;
    std::vector<gpu::Piece> pieces_;
};

// What several receives brought to one GPU, before each of them is delivered.
class Arrivals {
public:
    void add(Operation& operation, const Status& status) {
        const Staged& staged = operation.staged;
        if (!operation.receive || !operation.active || operation.unpacked || operation.whole || staged.device < 0 || !staged.buffer) return;
        int cancelled = 0;
        Count received = 0;
        if (test_cancelled(&status, &cancelled) || cancelled || get_elements(&status, packed_handle(), &received) || received <= 0) return;
        char* packed = staged.buffer->kind == Memory::pinned ? staged.buffer->memory : nullptr;
        Header header;
        if (received == header_bytes && rings.on() && rings.header_of(staged, header)) {
            packed = rings.memory_of(header, staged.device);
            received = static_cast<Count>(header.bytes);
        }
        if (!packed || received > staged.bytes()) return;
        const Layout part = received < staged.bytes() ? prefix(staged.layout, received) : staged.layout;
        if (together_.add(staged, part, packed)) operations_.push_back(&operation);
    }

    void move() {
        if (!together_.run(true)) return;
        for (Operation* operation : operations_) operation->moved = true;
    }

private:
    Together together_;
    std::vector<Operation*> operations_;
};

class Requests {
public:
    bool none() const { return count_.load(std::memory_order_relaxed) == 0; }

    void add(Handle request, Operation* operation) {
        const std::lock_guard lock(guard_);
        Operation*& known = table_[key(request)];
        if (known && !known->receive) drop(known); // a handle that the library shares between requests which are done
        known = operation;
        count_.store(table_.size(), std::memory_order_relaxed);
    }

    Operation* take(Handle request) {
        if (none()) return nullptr;
        const std::lock_guard lock(guard_);
        const auto found = table_.find(key(request));
        if (found == table_.end()) return nullptr;
        Operation* operation = found->second;
        table_.erase(found);
        count_.store(table_.size(), std::memory_order_relaxed);
        return operation;
    }

    // A request that has completed: its bytes go to their place, and it is forgotten, or kept for its next start. Returns what came of its bytes.
    int complete(Handle request, Operation* operation, Status& status) {
        const int code = deliver(*operation, status);
        operation->active = false;
        if (operation->persistent) add(request, operation);
        else drop(operation);
        return code;
    }

    static void drop(Operation* operation) {
        operation->staged.release();
        operation->sent.release();
        delete operation;
    }

private:
    static std::uint64_t key(Handle handle) {
        std::uint64_t value = 0;
        std::memcpy(&value, &handle, sizeof handle);
        return value;
    }
    std::mutex guard_;
    std::unordered_map<std::uint64_t, Operation*> table_;
    std::atomic<std::size_t> count_{0};
};

inline Requests requests;

// The requests of one completion call: what is known of each, its handle before the call, room for statuses the caller does not want.
class Batch {
public:
    Batch(int count, const Handle* handles) : live_(handles), handles_(handles, handles + count), operations_(static_cast<std::size_t>(count)) {
        for (std::size_t i = 0; i < operations_.size(); ++i) any_ |= (operations_[i] = requests.take(handles_[i])) != nullptr;
    }
    explicit operator bool() const { return any_; }

    Operation* operation(std::size_t i) const { return operations_[i]; }

    Status* statuses(Status* given) {
        if (given != mpi_constant::status_ignore) return given;
        own_.resize(operations_.size());
        return own_.data();
    }

    int complete(std::size_t i, Status& status) {
        Operation* operation = std::exchange(operations_[i], nullptr);
        return operation ? requests.complete(handles_[i], operation, status) : 0;
    }

    // A request that failed has no bytes to deliver. It is gone, or, where the library still has it, as a persistent one, its buffer stays its own.
    void fail(std::size_t i) {
        Operation* operation = std::exchange(operations_[i], nullptr);
        if (!operation) return;
        if (live_[i] == null_request_handle()) return Requests::drop(operation);
        if (operation->persistent) operation->active = false;
        requests.add(handles_[i], operation);
    }

    // The call failed without saying at which request: those that are gone are known by that.
    void fail_gone() {
        for (std::size_t i = 0; i < operations_.size(); ++i)
            if (operations_[i] && live_[i] == null_request_handle()) fail(i);
    }

    // What was delivered of a request that stays, so that the program may look at its bytes.
    int show(std::size_t i, Status& status) { return operations_[i] ? deliver(*operations_[i], status) : 0; }

    // All that did not complete is known again.
    ~Batch() {
        for (std::size_t i = 0; i < operations_.size(); ++i)
            if (operations_[i]) requests.add(handles_[i], operations_[i]);
    }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

private:
    const Handle* live_; // the program's own, as the library leaves them
    std::vector<Handle> handles_;
    std::vector<Operation*> operations_;
    std::vector<Status> own_;
    bool any_ = false;
};

} // namespace warpwright::mpi
