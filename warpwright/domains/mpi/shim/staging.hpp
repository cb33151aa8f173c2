// Contiguous buffers that stand for a message's bytes on their way: pinned where the object lies on a GPU, so that a kernel writes them at once.
#pragma once
#include <cstdlib>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "ring.hpp"
#include "types.hpp"

namespace warpwright::mpi {

enum class Memory { ordinary, pinned, device };

struct Buffer {
    char* memory;
    std::size_t room;
    Memory kind;
    int device; // by whose context it was made
};

// Buffers by kind and the logarithm of their size, kept for the next message: at most `kept` of each size, and `kept_bytes` of each kind.
class Pool {
public:
    // Null where there is no memory, or the driver refuses.
    Buffer* take(std::size_t bytes, Memory kind, int device) {
        const std::size_t room = std::bit_ceil(std::max<std::size_t>(bytes, 256));
        if (Buffer* buffer = again(room, kind, device)) return buffer;
        void* memory = nullptr;
        if (kind == Memory::ordinary) {
            memory = std::aligned_alloc(64, room);
        } else {
            gpu::Driver& cuda = *gpu::driver();
            const gpu::Current current(cuda, device); // the calling thread may have no context
            if (!current || allocate(cuda, kind, &memory, room)) return nullptr;
        }
        return memory ? new Buffer{static_cast<char*>(memory), room, kind, device} : nullptr;
    }

    void give(Buffer* buffer) {
        {
            const std::lock_guard lock(guard_);
            auto& free = of(buffer->kind, buffer->room);
            std::size_t& all = bytes_[static_cast<int>(buffer->kind)];
            if (free.size() < kept && (buffer->kind == Memory::ordinary || all + buffer->room <= kept_bytes)) {
                all += buffer->room;
                return free.push_back(buffer);
            }
        }
        if (buffer->kind == Memory::ordinary) {
            std::free(buffer->memory);
        } else {
            gpu::Driver& cuda = *gpu::driver();
            const gpu::Current current(cuda, buffer->device);
            if (buffer->kind == Memory::pinned) cuda.release_host(buffer->memory);
            else cuda.release(reinterpret_cast<gpu::Pointer>(buffer->memory));
        }
        delete buffer;
    }

private:
    static constexpr std::size_t kept = 32, kept_bytes = std::size_t(1) << 30;
    std::vector<Buffer*>& of(Memory kind, std::size_t room) { return free_[static_cast<int>(kind)][std::countr_zero(room)]; }

    // One that was given back: pinned memory is portable, any device's; a device's own is not.
    Buffer* again(std::size_t room, Memory kind, int device) {
        const std::lock_guard lock(guard_);
        auto& free = of(kind, room);
        for (std::size_t i = free.size(); i-- > 0;) {
            if (kind == Memory::device && free[i]->device != device) continue;
            Buffer* buffer = std::exchange(free[i], free.back());
            free.pop_back();
            bytes_[static_cast<int>(kind)] -= room;
            return buffer;
        }
        return nullptr;
    }

    static int allocate(gpu::Driver& cuda, Memory kind, void** memory, std::size_t room) {
        if (kind == Memory::pinned) return cuda.allocate_host(memory, room, 3);
        gpu::Pointer address = 0;
        const int code = cuda.allocate(&address, room);
        *memory = reinterpret_cast<void*>(address);
        return code;
    }

    std::mutex guard_;
    std::size_t bytes_[3] = {};
    std::vector<Buffer*> free_[3][64];
};

inline Pool pool;

// WARPWRIGHT_MPI_DEVICE: from how many bytes on a message of a GPU object stays on the GPU, packed, for a library that takes it there. Without it none
// does: two processes on one H200 took 106 ms for a halo of 9 MB in this way (Open MPI 4.1.4), and 5 ms through host memory.
inline Bytes least_on_device() {
    static const Bytes least = [] {
        const char* value = std::getenv("WARPWRIGHT_MPI_DEVICE");
        const long long bytes = value ? std::atoll(value) : 0;
        return bytes > 0 ? static_cast<Bytes>(bytes) : std::numeric_limits<Bytes>::max();
    }();
    return least;
}

constexpr Bytes header_bytes = 112; // of a message whose bytes lie in a ring: whole elements of every basic type, because MPICH looks

// One side of a message that is served here: its bytes lie packed in `buffer` while the library has them.
struct Staged {
    Layout layout;
    char* base = nullptr;
    Buffer* buffer = nullptr;
    int device = -1;       // of the object; -1: it lies on the host
    bool hopeless = false; // nothing is staged, because the GPU refused
    Remote* remote = nullptr; // whose ring holds the bytes; the buffer holds their header then
    Remote::Claim claim{};

    Bytes bytes() const { return layout.bytes(); }
    Bytes sent() const { return remote ? header_bytes : bytes(); }

    bool pack() const { return move(Direction::pack, layout); }
    bool unpack(Bytes received) const { return move(Direction::unpack, received < bytes() ? prefix(layout, received) : layout); }

    void release() {
        if (buffer) pool.give(buffer);
        buffer = nullptr;
    }

    // The header will not arrive.
    void withdraw() {
        if (remote) remote->release(claim);
    }

private:
    bool move(Direction direction, const Layout& part) const {
        if (!part.node) return true;
        if (device >= 0) {
            gpu::Driver& cuda = *gpu::driver();
            const gpu::Place here = gpu::place_of(cuda, base + part.offset);
            constexpr gpu::Where kinds[] = {gpu::Where::pageable, gpu::Where::pinned, gpu::Where::device};
            const gpu::Place there{kinds[static_cast<int>(buffer->kind)], buffer->kind == Memory::device ? buffer->device : here.device};
            return gpu::copy(cuda, part, base, buffer->memory, here, there, direction == Direction::unpack);
        }
        if (direction == Direction::pack) copy<Direction::pack>(part, base, buffer->memory, 0, part.bytes());
        else copy<Direction::unpack>(part, base, buffer->memory, 0, part.bytes());
        return true;
    }
};

// A buffer for the bytes of a layout at `base`, or nothing where the message is the library's own. `worth()`: whether an object on the host gains.
// `on_device`: from how many bytes on the packed bytes of a GPU object may stay there.
template <class Worth>
inline bool stage_layout(const void* base, Layout whole, Worth worth, Staged& staged, Bytes on_device = std::numeric_limits<Bytes>::max()) {
    if (!whole.node) return false;
    int device = -1;
    gpu::Driver* cuda = gpu::driver();
    if (gpu::avoided(cuda)) return false;
    if (cuda) {
        if (!base) return false; // MPI_BOTTOM: its parts may lie in different memories
        const gpu::Place place = gpu::place_of(*cuda, static_cast<const char*>(base) + whole.offset);
        if (place.where == gpu::Where::foreign) return false;
        if (place.where == gpu::Where::device) device = place.device;
    }
    if (device < 0 && !worth()) return false;
    const auto room = static_cast<std::size_t>(whole.bytes());
    Buffer* buffer = device >= 0 && whole.bytes() >= on_device ? pool.take(room, Memory::device, device) : nullptr;
    if (!buffer && device >= 0) buffer = pool.take(room, Memory::pinned, device); // also where the GPU's memory is full
    if (!buffer) buffer = pool.take(room, Memory::ordinary, device);              // and where no more can be pinned
    staged = {std::move(whole), const_cast<char*>(static_cast<const char*>(base)), buffer, device, !buffer && device >= 0};
    return buffer != nullptr;
}

// A type that is the library's own business: one that is not understood, or contiguous where the library takes all memory that there is.
inline bool left_alone(const Type& type) { return type.forwarded && !(type.known && gpu::present.load(std::memory_order_relaxed) && !knows_gpus()); }

// The same for `count` objects of a datatype. `learn`: the message goes or comes now, so that the object may be read.
template <class Size>
inline bool stage(const void* base, Size count, Handle datatype, Staged& staged, bool learn) {
    Type* type = types.get(datatype);
    if (left_alone(*type) || count <= 0) return false;
    try {
        const Layout whole = type->whole(count);
        if (whole.bytes() > static_cast<Bytes>(std::numeric_limits<Size>::max())) return false;
        char* object = const_cast<char*>(static_cast<const char*>(base));
        const LeftAlone::Key key = LeftAlone::key_of(datatype);
        const bool learns = learn && type->tried;
        const auto worth = [&] {
            if (type->forwarded) return false;
            const std::uint32_t passed = settled.forget(datatype);
            if (type->choice.packs(whole.bytes(), type->block, learns, datatype, count, whole, object, passed)) return true;
            if (const std::uint32_t uses = type->choice.settled(whole.bytes(), learns); uses && learn) settled.add(key, datatype, count, whole.offset, uses);
            return false;
        };
        return stage_layout(base, whole, worth, staged, least_on_device());
    } catch (const Overflow&) {
        return false;
    }
}

} // namespace warpwright::mpi
