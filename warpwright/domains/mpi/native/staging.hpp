// Contiguous buffers that stand for a message's bytes on their way: pinned where the object lies on a GPU, so that a kernel writes them at once.
#pragma once
#include <cstdlib>
#include <mutex>
#include <vector>

#include "device.hpp"
#include "types.hpp"

namespace warpwright::mpi {

struct Buffer {
    char* memory;
    std::size_t room;
    int device; // pinned, by this device's context; -1: ordinary memory
    bool pinned() const { return device >= 0; }
};

// Buffers by the logarithm of their size, kept for the next message; at most `kept` of each size.
class Pool {
public:
    // Null where there is no memory, or the driver refuses.
    Buffer* take(std::size_t bytes, int device) {
        const std::size_t room = std::bit_ceil(std::max<std::size_t>(bytes, 256));
        auto& free = free_[device >= 0][std::countr_zero(room)];
        {
            const std::lock_guard lock(guard_);
            if (!free.empty()) {
                Buffer* buffer = free.back();
                free.pop_back();
                return buffer; // pinned memory is portable: any device's
            }
        }
        void* memory = nullptr;
        if (device >= 0) {
            gpu::Driver& cuda = *gpu::driver();
            const gpu::Current current(cuda, device); // the calling thread may have no context
            if (!current || cuda.allocate_host(&memory, room, 3)) return nullptr;
        } else {
            memory = std::aligned_alloc(64, room);
        }
        return memory ? new Buffer{static_cast<char*>(memory), room, device} : nullptr;
    }

    void give(Buffer* buffer) {
        {
            const std::lock_guard lock(guard_);
            auto& free = free_[buffer->pinned()][std::countr_zero(buffer->room)];
            if (free.size() < kept) return free.push_back(buffer);
        }
        if (buffer->pinned()) {
            gpu::Driver& cuda = *gpu::driver();
            const gpu::Current current(cuda, buffer->device);
            cuda.release_host(buffer->memory);
        } else {
            std::free(buffer->memory);
        }
        delete buffer;
    }

private:
    static constexpr std::size_t kept = 32;
    std::mutex guard_;
    std::vector<Buffer*> free_[2][64];
};

inline Pool pool;

// Messages of fewer bytes go through the library's own engine: there is nothing to gain. WARPWRIGHT_MPI_LEAST: what this machine's model says.
inline Bytes least_on_host() {
    static const Bytes least = [] {
        const char* value = std::getenv("WARPWRIGHT_MPI_LEAST");
        return value ? std::max<Bytes>(1, std::atoll(value)) : Bytes(512);
    }();
    return least;
}

// One side of a message that is served here: its bytes lie packed in `buffer` while the library has them.
struct Staged {
    Layout layout;
    char* base = nullptr;
    Buffer* buffer = nullptr;

    Bytes bytes() const { return layout.bytes(); }

    bool pack() const { return move(Direction::pack, layout); }
    bool unpack(Bytes received) const { return move(Direction::unpack, received < bytes() ? prefix(layout, received) : layout); }

    void release() {
        if (buffer) pool.give(buffer);
        buffer = nullptr;
    }

private:
    bool move(Direction direction, const Layout& part) const {
        if (!part.node) return true;
        if (buffer->pinned()) {
            gpu::Driver& cuda = *gpu::driver();
            const gpu::Place here = gpu::place_of(cuda, base + part.offset);
            return gpu::copy(cuda, part, base, buffer->memory, here, {gpu::Where::pinned, here.device}, direction == Direction::unpack);
        }
        if (direction == Direction::pack) copy<Direction::pack>(part, base, buffer->memory, 0, part.bytes());
        else copy<Direction::unpack>(part, base, buffer->memory, 0, part.bytes());
        return true;
    }
};

// A buffer for the bytes of a layout at `base`, or nothing where the message is the library's own. `worth`: whether host buffers gain.
inline bool stage_layout(const void* base, Layout whole, bool worth, Staged& staged) {
    if (!whole.node || gpu::avoided()) return false;
    int device = -1;
    if (gpu::Driver* cuda = gpu::driver()) {
        if (!base) return false; // MPI_BOTTOM: its parts may lie in different memories
        const gpu::Place place = gpu::place_of(*cuda, static_cast<const char*>(base) + whole.offset);
        if (place.where == gpu::Where::foreign) return false;
        if (place.where == gpu::Where::device) device = place.device;
    }
    if (device < 0 && (!worth || whole.bytes() < least_on_host())) return false;
    Buffer* buffer = pool.take(static_cast<std::size_t>(whole.bytes()), device);
    if (!buffer) return false;
    staged = {std::move(whole), const_cast<char*>(static_cast<const char*>(base)), buffer};
    return true;
}

// The same for `count` objects of a datatype.
template <class Size>
inline bool stage(const void* base, Size count, Handle datatype, Staged& staged) {
    Type* type = types.get(datatype);
    if (type->forwarded || count <= 0) return false;
    try {
        Layout whole = type->whole(count);
        if (whole.bytes() > static_cast<Bytes>(std::numeric_limits<Size>::max())) return false;
        return stage_layout(base, std::move(whole), type->worth_on_host, staged);
    } catch (const Overflow&) {
        return false;
    }
}

} // namespace warpwright::mpi
