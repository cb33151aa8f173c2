// Memory of this process's GPU that other processes of the host pack into, exported by CUDA IPC. What they must know of it lies in shared memory: a
// sender claims chunks there, packs into them by a kernel of its own, and says which by a header through MPI; the receiver gives them back.
//
// A process exports one allocation, once, and keeps it to its end: a handle is never reused for other memory. Its identity is random, and a header
// repeats it, so that what is left of a job that died cannot be taken for a living one.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "anywhere.hpp"

namespace warpwright::mpi {

constexpr std::size_t chunk_bytes = 1 << 18;
constexpr u32 most_chunks = 1024;

struct Identity {
    std::uint64_t words[2] = {};
    bool operator==(const Identity&) const = default;
};

struct Board { // in shared memory, all zero at its making
    enum State : u32 { empty, open, closed };
    std::atomic<u32> state;
    u32 chunks;
    Identity identity;
    gpu::IpcHandle handle;
    std::atomic<u32> taken[most_chunks]; // 0: free, else the sender's rank and one
    enum Filled : u32 { not_yet, filled, failed };
    std::atomic<u32> state_of[most_chunks]; // of a message's first chunk, as its sender's GPU writes it after the kernel
};
static_assert(std::atomic<u32>::is_always_lock_free);

// The board of a process of this job on this host; null where there is none. The owner makes it anew.
inline Board* map_board(const std::string& name, bool owner) {
    if (owner) shm_unlink(name.c_str());
    const int file = shm_open(name.c_str(), owner ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    if (file < 0) return nullptr;
    void* memory = MAP_FAILED;
    const bool sized = owner ? ftruncate(file, sizeof(Board)) == 0 : lseek(file, 0, SEEK_END) == static_cast<off_t>(sizeof(Board));
    if (sized) memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<Board*>(memory);
}

// The receiver's side.
class Ring {
public:
    void announce(const std::string& name) { board_ = map_board(name, true), name_ = name, owner_ = getpid(); }

    // From now on others may pack into memory of this device. Tried once: where the GPU has no memory for it, or IPC is refused, there is no ring.
    void offer(gpu::Driver& cuda, int device) {
        if (!board_ || offered_.exchange(true)) return;
        const gpu::Current current(cuda, device);
        std::size_t bytes = wanted();
        gpu::Pointer memory = 0;
        while (current && cuda.allocate(&memory, bytes) && bytes > 64 * chunk_bytes) bytes /= 2, memory = 0;
        if (!memory) return;
        if (cuda.export_memory(&board_->handle, memory) || getrandom(&board_->identity, sizeof(Identity), 0) != sizeof(Identity)) {
            cuda.release(memory);
            return;
        }
        memory_ = reinterpret_cast<char*>(memory), device_ = device;
        board_->chunks = static_cast<u32>(bytes / chunk_bytes);
        u32 before = Board::empty;
        board_->state.compare_exchange_strong(before, Board::open);
    }

    // Nobody claims chunks any more: whoever has claimed some and sees this before its header is sent gives them back.
    void close() {
        if (board_) board_->state = Board::closed;
    }

    bool busy() const {
        if (!board_) return false;
        for (u32 i = 0; i < board_->chunks; ++i)
            if (board_->taken[i]) return true;
        return false;
    }

    // The memory of claimed chunks, or null where they are not this ring's.
    char* at(const Identity& identity, u32 first, u32 count) const {
        if (!memory_ || identity != board_->identity || count > board_->chunks || first > board_->chunks - count) return nullptr;
        return memory_ + first * chunk_bytes;
    }
    int device() const { return device_; }

    // Wait until the sender's kernel has filled the chunks; false where it failed.
    bool filled(u32 first) const {
        u32 state;
        for (int spins = 0; (state = board_->state_of[first].load(std::memory_order_acquire)) == Board::not_yet; ++spins)
            spins < 1 << 12 ? static_cast<void>(__builtin_ia32_pause()) : static_cast<void>(sched_yield());
        return state == Board::filled;
    }

    void release(u32 first, u32 count) {
        for (u32 i = first; i < first + count; ++i) board_->taken[i] = 0;
    }

    void remove() {
        if (!board_ || owner_ != getpid()) return; // a child made by fork is no owner
        close(), shm_unlink(name_.c_str());
        owner_ = 0;
    }

private:
    // WARPWRIGHT_MPI_RING: how many bytes of the GPU others may pack into.
    static std::size_t wanted() {
        const char* value = std::getenv("WARPWRIGHT_MPI_RING");
        const long long bytes = value ? std::atoll(value) : 256 << 20;
        return std::clamp<long long>(bytes, 1, most_chunks * chunk_bytes) / chunk_bytes * chunk_bytes;
    }

    Board* board_ = nullptr;
    std::string name_;
    pid_t owner_ = 0;
    std::atomic<bool> offered_{false};
    char* memory_ = nullptr;
    int device_ = 0;
};

// The sender's side: another process's ring.
class Remote {
public:
    explicit Remote(Board* board) : board_(board) {}

    struct Claim {
        u32 first = 0, count = 0;
        char* memory = nullptr;     // as this process's device reaches it
        gpu::Pointer filled = 0; // where the device says that it has filled them; 0: it cannot, and the host does when it has waited
    };

    // Room for so many bytes, or a claim of nothing.
    Claim claim(gpu::Driver& cuda, int device, std::size_t bytes, u32 rank) {
        if (board_->state != Board::open) return {};
        char* base = mapped(cuda, device);
        const u32 count = static_cast<u32>((bytes + chunk_bytes - 1) / chunk_bytes);
        if (!base || bytes > most_chunks * chunk_bytes || count > board_->chunks) return {};
        for (u32 first = next_.load(std::memory_order_relaxed) % board_->chunks, tries = 0; tries <= 2 * board_->chunks;) {
            if (first + count > board_->chunks) tries += board_->chunks - first, first = 0;
            u32 got = 0, free = 0;
            while (got < count && board_->taken[first + got].compare_exchange_strong(free, rank + 1)) ++got, free = 0;
            if (got == count) {
                next_.store(first + count, std::memory_order_relaxed);
                board_->state_of[first] = Board::not_yet;
                const Claim claim{first, count, base + first * chunk_bytes, said_[device] ? said_[device] + first * sizeof(u32) : 0};
                if (board_->state == Board::open) return claim;
                release(claim);
                return {};
            }
            release({first, got});
            first += got + 1, tries += got + 1;
        }
        return {};
    }

    void release(const Claim& claim) {
        for (u32 i = claim.first; i < claim.first + claim.count; ++i) board_->taken[i] = 0;
    }

    // Whether the chunks were filled: they are another's only after that.
    bool told(const Claim& claim) const { return board_->state_of[claim.first].load(std::memory_order_acquire) == Board::filled; }
    void tell(const Claim& claim, bool good) { board_->state_of[claim.first] = good ? Board::filled : Board::failed; }

    const Identity& identity() const { return board_->identity; }

private:
    char* mapped(gpu::Driver& cuda, int device) {
        const std::lock_guard lock(guard_);
        if (!tried_[device]) {
            tried_[device] = true;
            const gpu::Current current(cuda, device);
            gpu::Pointer memory = 0;
            if (current && !cuda.open_memory(&memory, board_->handle, 1)) memory_[device] = reinterpret_cast<char*>(memory); // 1: with peer access
            constexpr unsigned portable_and_mapped = 3;
            if (memory_[device] && !registered_) registered_ = cuda.register_host(board_, sizeof(Board), portable_and_mapped) == 0;
            gpu::Pointer said = 0;
            if (registered_ && !cuda.address_of_host(&said, board_->state_of, 0)) said_[device] = said;
        }
        return memory_[device];
    }

    Board* board_;
    std::mutex guard_;
    std::atomic<u32> next_{0};
    bool tried_[gpu::most_devices] = {};
    bool registered_ = false;
    char* memory_[gpu::most_devices] = {};
    gpu::Pointer said_[gpu::most_devices] = {};
};

} // namespace warpwright::mpi
