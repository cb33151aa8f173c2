// Whether a message in host memory is packed here or left to the library's own engine: both are right, one is faster.
//
// What is known, the later over the earlier:
//   - the bytes and the blocks (WARPWRIGHT_MPI_LEAST, WARPWRIGHT_MPI_BLOCK: where the user sets one, nothing else is asked);
//   - what `warpwright mpi measure` saw between two processes (WARPWRIGHT_MPI_GAINS, a table by the logarithms of bytes and block);
//   - what both ways take on the program's own object, sent from this process to itself: a trial, after some uses, and again ever more rarely.
// A trial tells the engines apart, not the transport, which is why it corrects what was measured between two processes where that is known. It reads
// the program's object and writes to memory of its own.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>

#include "library.hpp"
#include "pack_cpu.hpp"

namespace warpwright::mpi {

inline const char* const least_set = std::getenv("WARPWRIGHT_MPI_LEAST");
inline const char* const block_set = std::getenv("WARPWRIGHT_MPI_BLOCK");

// Messages of fewer bytes go through the library's own engine: there is nothing to gain.
inline Bytes least_on_host() {
    static const Bytes least = least_set ? std::max<Bytes>(1, std::atoll(least_set)) : Bytes(512);
    return least;
}

// From here on a block is one memcpy for Open MPI as for us; MPICH copies byte vectors byte by byte whatever their length.
inline Bytes forwarded_block() {
    static const Bytes least = [] {
        if (block_set) return std::max<Bytes>(1, std::atoll(block_set));
#ifdef WARPWRIGHT_OPENMPI
        return Bytes(2048);
#else
        return std::numeric_limits<Bytes>::max();
#endif
    }();
    return least;
}

inline int logarithm(Bytes value) { return std::bit_width(static_cast<std::uint64_t>(value)) - 1; }

// The library's time over ours, in percent: between two processes, and from one to itself. As model.py writes it (`gains`).
class Gains {
public:
    struct Gain { int between = 0, alone = 0; };
    static constexpr int least_bytes = 9, sizes = 15, least_block = 3, blocks = 11;

    Gains() {
        const char* text = std::getenv("WARPWRIGHT_MPI_GAINS");
        for (Gain& gain : table_) {
            int length = 0;
            if (!text || std::sscanf(text, "%d/%d %n", &gain.between, &gain.alone, &length) != 2 || gain.between <= 0 || gain.alone <= 0) return;
            text += length;
        }
        known_ = true;
    }
    bool known() const { return known_; }
    Gain at(Bytes bytes, Bytes block) const {
        const int size = std::clamp(logarithm(bytes) - least_bytes, 0, sizes - 1), length = std::clamp(logarithm(block) - least_block, 0, blocks - 1);
        return table_[size * blocks + length];
    }

private:
    Gain table_[sizes * blocks];
    bool known_ = false;
};

inline const Gains& gains() {
    static const Gains read;
    return read;
}

constexpr float worth = 1.05F;         // the library's time over ours from which on packing is chosen: a tie is the library's
constexpr float worth_alone = 1.15F;   // the same where only trials are known: the transport favours the library's engine, which packs while it sends

// Without a trial.
inline bool worth_packing(Bytes bytes, Bytes block) {
    if (bytes < least_on_host()) return false;
    if (!gains().known() || least_set || block_set) return block < forwarded_block();
    return static_cast<float>(gains().at(bytes, block).between) >= 100 * worth;
}

// What a process sends to itself by either way, on a communicator of its own, so that no receive of the program's sees it. One trial at a time.
class Alone {
public:
    struct Times { float library_us, ours_us; bool same; };

    // The times of a message of these objects, the better of `rounds`; none where there is no room, or another thread is at it.
    std::optional<Times> times(Handle datatype, int count, const Layout& whole, char* base, bool ours_first) {
        const std::unique_lock lock(busy_, std::try_to_lock);
        if (!lock || broken_ || (!ready_ && !make())) return std::nullopt;
        const Bytes bytes = whole.bytes(), low = whole.offset + whole.node->low, high = whole.offset + whole.node->high;
        if (bytes > most_bytes || high - low > most_span) return std::nullopt;
        const Room packed(bytes), arrived(bytes), object(high - low + 64);
        if (!packed.memory || !arrived.memory || !object.memory) return std::nullopt;
        char* there = object.memory - low + reinterpret_cast<std::uintptr_t>(base + low) % 64; // aligned as the object is
        const auto library = [&] { return sent(base, there, count, datatype); };
        const auto ours = [&] {
            copy<Direction::pack>(whole, base, packed.memory, 0, bytes);
            if (!sent(packed.memory, arrived.memory, static_cast<int>(bytes), packed_handle())) return false;
            copy<Direction::unpack>(whole, there, arrived.memory, 0, bytes);
            return true;
        };
        const auto good = [&] { // no byte of the copy is right before the library's message
            copy<Direction::pack>(whole, base, packed.memory, 0, bytes);
            for (Bytes i = 0; i < bytes; ++i) arrived.memory[i] = static_cast<char>(~packed.memory[i]);
            copy<Direction::unpack>(whole, there, arrived.memory, 0, bytes);
            if (!library()) return false;
            copy<Direction::pack>(whole, there, arrived.memory, 0, bytes);
            return true;
        };
        if (!good()) return failed();
        Times result{0, 0, std::memcmp(packed.memory, arrived.memory, static_cast<std::size_t>(bytes)) == 0};
        if (!ours()) return failed();
        for (const bool mine : {ours_first, !ours_first}) {
            const auto start = std::chrono::steady_clock::now();
            if (!(mine ? ours() : library())) return failed();
            const std::chrono::duration<float, std::micro> taken = std::chrono::steady_clock::now() - start;
            (mine ? result.ours_us : result.library_us) = taken.count();
        }
        return result;
    }

    void end() {
        const std::lock_guard lock(busy_);
        if (ready_) comm_free_(&comm_);
        ready_ = false, broken_ = true;
    }

private:
    struct Room {
        char* memory;
        explicit Room(Bytes bytes) : memory(static_cast<char*>(std::aligned_alloc(64, (static_cast<std::size_t>(bytes) + 63) / 64 * 64))) {}
        ~Room() { std::free(memory); }
        Room(const Room&) = delete;
        Room& operator=(const Room&) = delete;
    };
    static constexpr Bytes most_bytes = Bytes(8) << 20, most_span = Bytes(32) << 20;

    // A split passes on no attributes of the program's. Without MPI_COMM_SELF (a session alone) there are no trials.
    bool make() {
        int initialised = 0;
        ready_ = !initialized_(&initialised) && initialised && !comm_split_(self_handle(), 0, 0, &comm_);
        broken_ = !ready_;
        return ready_;
    }
    std::nullopt_t failed() {
        broken_ = true;
        return std::nullopt;
    }
    bool sent(const void* from, void* to, int count, Handle datatype) {
        Handle request;
        Status status;
        return !irecv_(to, count, datatype, 0, 0, comm_, &request) && !send_(from, count, datatype, 0, 0, comm_) && !wait_(&request, &status);
    }

    // By their profiling names: no tool counts them as the program's.
    Original<int(int*)> initialized_{"PMPI_Initialized"};
    Original<int(Handle, int, int, Handle*)> comm_split_{"PMPI_Comm_split"};
    Original<int(Handle*)> comm_free_{"PMPI_Comm_free"};
    Original<int(void*, int, Handle, int, int, Handle, Handle*)> irecv_{"PMPI_Irecv"};
    Original<int(const void*, int, Handle, int, int, Handle)> send_{"PMPI_Send"};
    Original<int(Handle*, Status*)> wait_{"PMPI_Wait"};
    std::mutex busy_;
    Handle comm_{};
    bool ready_ = false, broken_ = false;
};

inline Alone alone;

// What is known of messages of one type and of one size, by its logarithm.
class Seen {
public:
    struct Known { std::uint32_t uses, trials; float library_us, ours_us; bool differs; };

    // Counts a use; whether it is one for a trial: until there are three, whose median is not one interrupted one, then ever more rarely.
    bool due() {
        const std::uint32_t use = uses_.load(std::memory_order_relaxed);
        uses_.store(use + 1, std::memory_order_relaxed); // without the bus lock: a use lost between two threads does no harm
        if (ratio_.load(std::memory_order_relaxed) == 0) return use >= first;
        return use >= 256 && std::has_single_bit(use) && std::countr_zero(use) % 4 == 0;
    }

    void note(const Alone::Times& times) {
        const std::lock_guard lock(guard_);
        library_[trials_ % 3] = times.library_us, ours_[trials_ % 3] = times.ours_us;
        ++trials_;
        differs_ = differs_ || !times.same;
        if (trials_ >= 3) ratio_.store(differs_ ? 1e9F : median(library_) / median(ours_), std::memory_order_relaxed);
    }

    // The library's time over ours when sent to itself; 0: not known. Infinite, as it were, where the library's bytes were others than the type says.
    float ratio() const { return ratio_.load(std::memory_order_relaxed); }

    Known known() {
        const std::lock_guard lock(guard_);
        return {uses_, trials_, trials_ >= 3 ? median(library_) : 0, trials_ >= 3 ? median(ours_) : 0, differs_};
    }

private:
    static constexpr std::uint32_t first = 7; // a program of few messages has none
    static float median(const float (&all)[3]) { return std::max(std::min(all[0], all[1]), std::min(std::max(all[0], all[1]), all[2])); }
    std::atomic<std::uint32_t> uses_{0};
    std::atomic<float> ratio_{0};
    std::mutex guard_;
    std::uint32_t trials_ = 0;
    float library_[3] = {}, ours_[3] = {};
    bool differs_ = false;
};

// The same for every size of one type.
class Choice {
public:
    ~Choice() {
        for (auto& seen : seen_) delete seen.load();
    }
    // Whether a message is packed: what is known by now.
    bool packs(Bytes bytes, Bytes block) const {
        const Seen* seen = bytes < least_on_host() ? nullptr : seen_[place(bytes)].load(std::memory_order_acquire);
        const float ratio = seen ? seen->ratio() : 0;
        if (ratio == 0) return worth_packing(bytes, block);
        if (!gains().known()) return ratio >= worth_alone;
        const auto [between, by_itself] = gains().at(bytes, block);
        return ratio * static_cast<float>(between) / static_cast<float>(by_itself) >= worth;
    }

    // The same for a message that is about to be sent or received, `count` objects at `base`, and whether to learn from it.
    bool packs(Bytes bytes, Bytes block, bool learn, Handle datatype, Count count, const Layout& whole, char* base) {
        if (learn && !least_set && !block_set && bytes >= least_on_host() && count <= std::numeric_limits<int>::max()) {
            Seen& seen = of(bytes);
            if (seen.due())
                if (const auto times = alone.times(datatype, static_cast<int>(count), whole, base, seen.known().trials % 2)) seen.note(*times);
        }
        return packs(bytes, block);
    }

    Seen* find(Bytes bytes) const { return seen_[place(bytes)].load(std::memory_order_acquire); }

private:
    static std::size_t place(Bytes bytes) {
        return static_cast<std::size_t>(std::clamp(logarithm(bytes) - Gains::least_bytes, 0, Gains::sizes - 1));
    }
    Seen& of(Bytes bytes) {
        std::atomic<Seen*>& slot = seen_[place(bytes)];
        if (Seen* known = slot.load(std::memory_order_acquire)) return *known;
        Seen *fresh = new Seen, *before = nullptr;
        if (slot.compare_exchange_strong(before, fresh)) return *fresh;
        delete fresh;
        return *before;
    }
    std::atomic<Seen*> seen_[Gains::sizes] = {};
};

} // namespace warpwright::mpi
