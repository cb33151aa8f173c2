// Whether a message in host memory is packed here or left to the library's own engine: both are right, one is faster.
//
// What is known, the later over the earlier:
//   - the bytes and the blocks (WARPWRIGHT_MPI_LEAST, WARPWRIGHT_MPI_BLOCK: where the user sets one, nothing else is asked);
//   - what `warpwright mpi measure` saw between two processes (WARPWRIGHT_MPI_TIMES, a table by the logarithms of bytes and block);
//   - what both ways take on the program's own object, sent from this process to itself: a trial, after some uses, and again ever more rarely.
// A trial tells the engines apart, not the transport, which is why it corrects what was measured between two processes where that is known. It reads
// the program's object and writes to memory of its own.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <locale>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

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

// From here on a block is one memcpy for the libraries as for us.
constexpr Bytes long_block = 2048;

// The same for MPI_Pack and collectives, where MPICH copies byte vectors byte by byte whatever their length.
inline Bytes forwarded_block() {
    static const Bytes least = [] {
        if (block_set) return std::max<Bytes>(1, std::atoll(block_set));
#ifdef WARPWRIGHT_OPENMPI
        return long_block;
#else
        return std::numeric_limits<Bytes>::max();
#endif
    }();
    return least;
}

inline int logarithm(Bytes value) { return std::bit_width(static_cast<std::uint64_t>(value)) - 1; }

// A message's times by both ways, in microseconds.
struct Both {
    float library_us = 0, ours_us = 0;
};

// What `warpwright mpi measure` saw, between two processes and from one to itself, at powers of two of bytes and block. As model.py writes it (`table`).
class Measured {
public:
    struct Point {
        Both between, alone;
    };
    static constexpr int least_bytes = 9, sizes = 15, least_block = 3, blocks = 11;

    Measured() {
        const char* given = std::getenv("WARPWRIGHT_MPI_TIMES");
        if (!given) return;
        std::istringstream text(given);
        text.imbue(std::locale::classic()); // the program's own may write 0,5
        for (Point& point : table_) {
            auto& [between, alone] = point;
            if (!(text >> between.library_us >> between.ours_us >> alone.library_us >> alone.ours_us)) return;
            if (!(between.library_us > 0 && between.ours_us > 0 && alone.library_us > 0 && alone.ours_us > 0)) return;
        }
        known_ = true;
    }
    bool known() const { return known_; }

    // Between the points, and beyond them, a time is linear in the logarithms.
    Point at(Bytes bytes, Bytes block) const {
        const auto [row, down] = place(bytes, least_bytes, sizes);
        const auto [column, right] = place(block, least_block, blocks);
        const Point* corner = table_ + row * blocks + column;
        const auto mixed = [&](auto time) {
            const auto between = [](float one, float other, float part) { return one * std::pow(other / one, part); };
            return between(between(time(corner[0]), time(corner[1]), right), between(time(corner[blocks]), time(corner[blocks + 1]), right), down);
        };
        return {{mixed([](const Point& p) { return p.between.library_us; }), mixed([](const Point& p) { return p.between.ours_us; })},
                {mixed([](const Point& p) { return p.alone.library_us; }), mixed([](const Point& p) { return p.alone.ours_us; })}};
    }

private:
    static std::pair<int, float> place(Bytes value, int least, int count) {
        const float at = std::clamp(std::log2(static_cast<float>(value)) - static_cast<float>(least), 0.0F, static_cast<float>(count - 1));
        const int before = std::min(static_cast<int>(at), count - 2);
        return {before, at - static_cast<float>(before)};
    }
    Point table_[sizes * blocks];
    bool known_ = false;
};

inline const Measured& measured() {
    static const Measured read;
    return read;
}

// The library's time over ours from which on packing is chosen: a tie is the library's. Where only trials are known it has to be more, because the
// transport favours the library's engine, which packs while it sends.
constexpr float worth = 1.1F, worth_alone = 1.15F;

// Trials alone do not decide for Open MPI: it has another protocol for contiguous bytes than for a derived type, from 4 KiB on, and a trial does not see
// what that costs. 8 KiB in blocks of 24 bytes took its engine three times as long as ours, and its message 0.85 of ours on one machine, 1.09 on another.
#ifdef WARPWRIGHT_OPENMPI
constexpr bool needs_measurement = true;
#else
constexpr bool needs_measurement = false;
#endif

// Without a trial.
inline bool worth_packing(Bytes bytes, Bytes block) {
    if (bytes < least_on_host()) return false;
    if (least_set || block_set) return block < forwarded_block();
    if (!measured().known()) return !needs_measurement && block < long_block;
    const auto [between, alone] = measured().at(bytes, block);
    return between.library_us >= worth * between.ours_us;
}

// With trials. What they saw of an object's engines beyond what the measurement did is added to its times: the transport stays what it was.
inline bool worth_packing(Bytes bytes, Bytes block, const Both& seen) {
    if (!measured().known()) return !needs_measurement && block < long_block && seen.library_us >= worth_alone * seen.ours_us;
    const auto [between, alone] = measured().at(bytes, block);
    const float library_us = between.library_us + seen.library_us - alone.library_us, ours_us = between.ours_us + seen.ours_us - alone.ours_us;
    return library_us >= worth * std::max(ours_us, between.ours_us / 4); // no less than that: a hiccup of the measurement
}

// What a process sends to itself by either way, on a communicator of its own, so that no receive of the program's sees it. One trial at a time.
class Alone {
public:
    struct Times { Both us; bool same; };

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
        Times result{{}, std::memcmp(packed.memory, arrived.memory, static_cast<std::size_t>(bytes)) == 0};
        if (!ours()) return failed();
        for (const bool mine : {ours_first, !ours_first}) {
            const auto start = std::chrono::steady_clock::now();
            if (!(mine ? ours() : library())) return failed();
            const std::chrono::duration<float, std::micro> taken = std::chrono::steady_clock::now() - start;
            (mine ? result.us.ours_us : result.us.library_us) = taken.count();
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
    struct Known { std::uint32_t uses, trials; Both us; bool differs; };
    enum Verdict : int { none, library, packed };

    // Counts a use; whether it is one for a trial: until there are three, whose median is not one interrupted one, then ever more rarely.
    bool due() {
        const std::uint32_t use = uses_.load(std::memory_order_relaxed);
        uses_.store(use + 1, std::memory_order_relaxed); // without the bus lock: a use lost between two threads does no harm
        return verdict() == none ? use >= first : use >= 256 && std::has_single_bit(use) && std::countr_zero(use) % 4 == 0;
    }

    // How many uses there are before the next trial, of what the library was found to be better at, and that so many were counted elsewhere.
    std::uint32_t until_trial() const {
        const std::uint32_t use = uses_.load(std::memory_order_relaxed);
        for (std::uint64_t next = 256; next < std::uint64_t(1) << 32; next *= 16)
            if (use <= next) return static_cast<std::uint32_t>(next - use);
        return std::numeric_limits<std::uint32_t>::max();
    }
    void add(std::uint32_t uses) { uses_.store(uses_.load(std::memory_order_relaxed) + uses, std::memory_order_relaxed); }

    void note(const Alone::Times& times, Bytes bytes, Bytes block) {
        const std::lock_guard lock(guard_);
        library_[trials_ % 3] = times.us.library_us, ours_[trials_ % 3] = times.us.ours_us;
        ++trials_;
        differs_ = differs_ || !times.same; // a library whose bytes are others than the type says is not taken
        if (trials_ >= 3) verdict_.store(differs_ || worth_packing(bytes, block, medians()) ? packed : library, std::memory_order_relaxed);
    }

    Verdict verdict() const { return verdict_.load(std::memory_order_relaxed); }

    Known known() {
        const std::lock_guard lock(guard_);
        return {uses_, trials_, trials_ >= 3 ? medians() : Both{}, differs_};
    }

private:
    static constexpr std::uint32_t first = 7; // a program of few messages has none
    static float median(const float (&all)[3]) { return std::max(std::min(all[0], all[1]), std::min(std::max(all[0], all[1]), all[2])); }
    Both medians() const { return {median(library_), median(ours_)}; }
    std::atomic<std::uint32_t> uses_{0};
    std::atomic<Verdict> verdict_{none};
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
        const Seen* seen = bytes < least_on_host() ? nullptr : find(bytes);
        const Seen::Verdict verdict = seen ? seen->verdict() : Seen::none;
        return verdict == Seen::none ? worth_packing(bytes, block) : verdict == Seen::packed;
    }

    // The same for a message that is about to be sent or received, `count` objects at `base`, and whether to learn from it.
    // `passed`: how many were the library's since without being asked here.
    bool packs(Bytes bytes, Bytes block, bool learn, Handle datatype, Count count, const Layout& whole, char* base, std::uint32_t passed) {
        if (learn && learns(bytes) && count <= std::numeric_limits<int>::max()) {
            Seen& seen = of(bytes);
            seen.add(passed);
            if (seen.due())
                if (const auto times = alone.times(datatype, static_cast<int>(count), whole, base, seen.known().trials % 2)) seen.note(*times, bytes, block);
        }
        return packs(bytes, block);
    }

    // For how many messages that are the library's nothing new will be known. `learn` as above.
    std::uint32_t settled(Bytes bytes, bool learn) const {
        if (!learn || !learns(bytes)) return std::numeric_limits<std::uint32_t>::max();
        const Seen* seen = find(bytes);
        return seen && seen->verdict() == Seen::library ? seen->until_trial() : 0;
    }

    static bool learns(Bytes bytes) { return !least_set && !block_set && bytes >= least_on_host(); }
    Seen* find(Bytes bytes) const { return seen_[place(bytes)].load(std::memory_order_acquire); }

private:
    static std::size_t place(Bytes bytes) {
        return static_cast<std::size_t>(std::clamp(logarithm(bytes) - Measured::least_bytes, 0, Measured::sizes - 1));
    }
    Seen& of(Bytes bytes) {
        std::atomic<Seen*>& slot = seen_[place(bytes)];
        if (Seen* known = slot.load(std::memory_order_acquire)) return *known;
        Seen *fresh = new Seen, *before = nullptr;
        if (slot.compare_exchange_strong(before, fresh)) return *fresh;
        delete fresh;
        return *before;
    }
    std::atomic<Seen*> seen_[Measured::sizes] = {};
};

} // namespace warpwright::mpi
