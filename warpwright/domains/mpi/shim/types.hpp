// What the shim knows of each datatype handle. Reading takes no lock: a handle that one thread frees while another uses it is the program's error.
#pragma once
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "choice.hpp"
#include "datatype.hpp"

namespace warpwright::mpi {

// How a datatype is served: its layout where the shim packs it itself.
struct Type {
    bool forwarded; // contiguous, or not understood: the library's own business
    Layout layout;  // of one object
    Bytes extent = 0;
    bool worth_on_host = false; // where MPI_Pack moves the bytes, or a collective
    bool known = false;         // the layout is right, also of a contiguous type
    Nest nest{};                // of one object, from the layout's offset on, where it is one
    Bytes block = 0;            // its shortest, or a mean
    bool tried = true;          // the library's engine may be tried on it

    // The layout of `count` objects. The last one is kept: programs repeat themselves, and tables on a GPU are kept by layout.
    Layout whole(Count count) {
        if (count == 1) return layout;
        const std::lock_guard lock(guard);
        if (count != kept_count) kept = repeated(layout, count, extent), kept_count = count;
        return kept;
    }

    std::mutex guard{};
    Count kept_count = -1;
    Layout kept{};
    Choice choice{}; // where a message of this type packs
};

inline Bytes shortest_block(const Node& node) {
    if (node.kind == Kind::dense) return node.bytes;
    if (node.kind == Kind::strided) return shortest_block(*node.child);
    return node.bytes / static_cast<Bytes>(node.parts.size()); // on average
}

inline bool alike(const Type& a, const Type& b) {
    if (!a.known || !b.known || a.extent != b.extent || a.layout.offset != b.layout.offset || !a.layout.node != !b.layout.node) return false;
    return !a.layout.node || same(a.layout.node, b.layout.node);
}

inline Type* understood(Handle handle) {
    try {
        saw_empty = false;
        auto found = described(handle);
        if (!found) return new Type{true, {}};
        const bool contiguous = !found->layout.node || (found->layout.node->kind == Kind::dense && found->extent == found->layout.bytes());
        const Bytes block = found->layout.node ? shortest_block(*found->layout.node) : 0;
        const bool worth = !contiguous && block < forwarded_block();
        return new Type{contiguous, found->layout, found->extent, worth, true, found->layout.node ? nest_of(*found->layout.node) : Nest{}, block, !saw_empty};
    } catch (const Overflow&) {
        return new Type{true, {}};
    }
}

// Handles that are known to be left alone: asked before all else, by as few instructions as that takes, because a forwarded call of a contiguous type
// lasts 13 ns in all. Whether CUDA is present is part of the key: types that are left alone without it need not be with it.
class LeftAlone {
public:
    using Key = std::uint64_t;
    static Key key_of(Handle handle, bool present = gpu::present.load(std::memory_order_relaxed)) {
        Key key = 0;
        std::memcpy(&key, &handle, sizeof handle);
        return key << 1 | static_cast<Key>(present);
    }
    bool has(Handle handle) const {
        const Key key = key_of(handle);
        return keys_[home(key)].load(std::memory_order_relaxed) == key;
    }
    void add(Key key) { keys_[home(key)].store(key, std::memory_order_relaxed); }
    void forget(Handle handle) {
        for (const bool present : {false, true})
            if (Key key = key_of(handle, present); keys_[home(key)].load(std::memory_order_relaxed) == key)
                keys_[home(key)].store(0, std::memory_order_relaxed);
    }

    static constexpr int bits = 10;
    static std::size_t home(Key key) { return static_cast<std::uint32_t>(key) * 0x9e3779b1u >> (32 - bits); }

private:
    std::atomic<Key> keys_[1 << bits];
};

inline LeftAlone left;

// Messages of derived types in host memory that were found to be the library's: asked early, because all that is asked of others takes as long as the
// library takes for some hundred bytes. One count of objects a type. A thread that reads half of what another writes sends a message by the library,
// which is right as well.
class Settled {
public:
    // Whether a message is the library's; counts it then.
    bool has(Handle handle, Count count, const void* base) {
        Slot& slot = slot_of(handle);
        if (slot.key.load(std::memory_order_acquire) != LeftAlone::key_of(handle) || slot.count.load(std::memory_order_relaxed) != count) return false;
        const std::uint32_t used = slot.used.load(std::memory_order_relaxed);
        if (used >= slot.uses.load(std::memory_order_relaxed)) return false;
        const char* start = static_cast<const char*>(base) + slot.offset.load(std::memory_order_relaxed);
        if (!gpu::on_heap(start) && gpu::driver()) return false; // CUDA has come, and the object may be a GPU's
        slot.used.store(used + 1, std::memory_order_relaxed);
        return true;
    }
    // For so many uses: after them it is time for a trial, which may find otherwise. `offset`: of the objects' first byte.
    void add(LeftAlone::Key key, Handle handle, Count count, Bytes offset, std::uint32_t uses) {
        Slot& slot = slot_of(handle);
        slot.key.store(0, std::memory_order_relaxed);
        slot.count.store(count, std::memory_order_relaxed), slot.offset.store(offset, std::memory_order_relaxed);
        slot.uses.store(uses, std::memory_order_relaxed), slot.used.store(0, std::memory_order_relaxed);
        slot.key.store(key, std::memory_order_release);
    }
    // How many uses there were, of a type that is not settled from now on.
    std::uint32_t forget(Handle handle) {
        Slot& slot = slot_of(handle);
        if (slot.key.load(std::memory_order_relaxed) >> 1 != LeftAlone::key_of(handle, false) >> 1) return 0;
        slot.key.store(0, std::memory_order_relaxed);
        return slot.used.load(std::memory_order_relaxed);
    }

private:
    struct Slot {
        std::atomic<LeftAlone::Key> key{0};
        std::atomic<Count> count{0};
        std::atomic<Bytes> offset{0};
        std::atomic<std::uint32_t> uses{0}, used{0};
    };
    Slot& slot_of(Handle handle) { return slots_[LeftAlone::home(LeftAlone::key_of(handle, false))]; }
    Slot slots_[1 << LeftAlone::bits];
};

inline Settled settled;

class Types {
public:
    Type* find(Handle handle) {
        const std::uint64_t key = key_of(handle);
        for (std::size_t i = 0, at = home(key); i < probes; ++i, at = (at + 1) % slots) {
            const std::uint64_t seen = table_[at].key.load(std::memory_order_acquire);
            if (__builtin_expect(seen == key, 1)) return table_[at].type.load(std::memory_order_relaxed);
            if (seen == 0) break;
        }
        return nullptr;
    }

    // The type, read from the library the first time it is seen: at its commit, or later for one that MPI_Type_dup made.
    Type* get(Handle handle) {
        Type* type = find(handle);
        return __builtin_expect(type != nullptr, 1) ? type : add(handle);
    }

    Type* add(Handle handle) {
        Type* type = understood(handle);
        if (Type* const before = find(handle); before && alike(*before, *type)) {
            delete type; // committed once more, which changes nothing: another thread may be using what is known
            return before;
        }
        forget(handle);
        const std::uint64_t key = key_of(handle);
        const std::lock_guard lock(writing_);
        for (std::size_t i = 0, at = home(key); i < probes; ++i, at = (at + 1) % slots) {
            const std::uint64_t seen = table_[at].key.load(std::memory_order_relaxed);
            if (seen == key) { // another thread was first
                delete type;
                return table_[at].type.load(std::memory_order_relaxed);
            }
            if (seen > 1) continue;
            table_[at].type.store(type, std::memory_order_relaxed);
            table_[at].key.store(key, std::memory_order_release);
            return type;
        }
        delete type; // no room: left to the library
        static Type forwarded{true, {}};
        return &forwarded;
    }

    void forget(Handle handle) {
        left.forget(handle), settled.forget(handle);
        const std::uint64_t key = key_of(handle);
        const std::lock_guard lock(writing_);
        for (std::size_t i = 0, at = home(key); i < probes; ++i, at = (at + 1) % slots) {
            const std::uint64_t seen = table_[at].key.load(std::memory_order_relaxed);
            if (seen == 0) return;
            if (seen != key) continue;
            table_[at].key.store(1, std::memory_order_release); // 1: was used, so that a search goes on behind it
            delete table_[at].type.load(std::memory_order_relaxed);
            return;
        }
    }

private:
    struct Slot {
        std::atomic<std::uint64_t> key{0};
        std::atomic<Type*> type{nullptr};
    };
    static constexpr std::size_t slots = 1 << 15, probes = 16;

    static std::uint64_t key_of(Handle handle) {
        std::uint64_t key = 0;
        std::memcpy(&key, &handle, sizeof handle);
        return key + 2;
    }
    static std::size_t home(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15ULL) >> (64 - 15); }

    std::mutex writing_;
    Slot table_[slots];
};

inline Types types;

} // namespace warpwright::mpi
