// Messages of GPU objects between processes of one host: the sender packs into the receiver's ring, and a header goes through MPI in place of the
// bytes, so that matching, order and completion stay the library's. The receiver takes the bytes out of its ring when the header has arrived.
//
// A header may match any receive. Where WARPWRIGHT_MPI_PEER is set, every receive of the process is therefore looked at when it completes; a process that
// probes, which would see the header's length, gets no more of them; a header that arrives where it cannot be read ends the program.
#pragma once
#include <memory>
#include <unordered_map>

#include "staging.hpp"

namespace warpwright::mpi {

inline Original<int(Handle, int*)> comm_rank("MPI_Comm_rank");
inline Original<int(Handle, int*)> comm_test_inter("MPI_Comm_test_inter");
inline Original<int(Handle*)> comm_get_parent("MPI_Comm_get_parent");
inline Original<int(Handle, Handle*)> comm_group("MPI_Comm_group");
inline Original<int(Handle*)> group_free("MPI_Group_free");
inline Original<int(Handle, int, const int*, Handle, int*)> group_translate_ranks("MPI_Group_translate_ranks");
inline Original<int(Status*, Handle, Count)> status_set_elements("MPI_Status_set_elements_x");

struct Header {
    std::uint64_t magic = 0x6d70692e72696e67;
    Identity identity;
    std::uint64_t bytes = 0;
    u32 first = 0, count = 0;
    char unused[header_bytes - 40] = {};
};
static_assert(sizeof(Header) == header_bytes);

class Rings {
public:
    ~Rings() { ring_.remove(); }

    // Whether headers are understood here: asked for by WARPWRIGHT_MPI_PEER, and the processes of the job can find each other.
    bool on() {
        const int known = state_.load(std::memory_order_acquire);
        return known ? known == 1 : find_out();
    }

    // False once it is known that they are not.
    bool may_be_on() const { return state_.load(std::memory_order_relaxed) != 2; }

    // The ring of a process, or null where it has none or lies elsewhere.
    Remote* of(Handle comm, int peer) {
        int there = peer;
        if (comm != world_handle() && !in_world(comm, peer, there)) return nullptr;
        const std::lock_guard lock(guard_);
        auto& remote = remotes_[there];
        if (!remote) {
            Board* board = there == rank_ ? nullptr : map_board(name_of(there), false);
            if (!board) return nullptr;
            remote = std::make_unique<Remote>(board);
        }
        return remote.get();
    }

    // Pack a GPU object into its receiver's ring; false: it goes another way.
    bool send(const void* base, Layout whole, Handle comm, int peer, Staged& staged) {
        gpu::Driver* cuda = gpu::driver();
        if (!cuda || !base || !whole.node || whole.bytes() < least_ || gpu::avoided()) return false;
        const gpu::Place place = gpu::place_of(*cuda, static_cast<const char*>(base) + whole.offset);
        if (place.where != gpu::Where::device) return false;
        Remote* remote = of(comm, peer);
        if (!remote) return false;
        auto claim = remote->claim(*cuda, place.device, static_cast<std::size_t>(whole.bytes()), static_cast<u32>(rank_));
        if (!claim.memory) return false;
        char* start = const_cast<char*>(static_cast<const char*>(base));
        Buffer* buffer = pool.take(header_bytes, Memory::ordinary, -1);
        if (!buffer || !fill(*cuda, place.device, *remote, whole, start, claim)) {
            if (buffer) pool.give(buffer);
            remote->release(claim);
            return false;
        }
        Header header;
        header.identity = remote->identity();
        header.bytes = static_cast<std::uint64_t>(whole.bytes()), header.first = claim.first, header.count = claim.count;
        std::memcpy(buffer->memory, &header, header_bytes);
        staged = {std::move(whole), start, buffer, place.device, false, remote, claim};
        return true;
    }

    // A send is done when its kernel is: the program may write its object then. False where the kernel failed.
    static bool sent(const Staged& staged) {
        if (!staged.remote || !staged.claim.filled || staged.remote->told(staged.claim)) return true;
        gpu::Driver& cuda = *gpu::driver();
        const gpu::Use use(cuda, staged.device);
        const bool good = use && cuda.wait(use->stream) == 0;
        if (!good) staged.remote->tell(staged.claim, false);
        return good;
    }

    // A receive into memory of a GPU is a reason to offer a ring.
    void expect(const void* address) {
        if (offered_.load(std::memory_order_relaxed)) return;
        gpu::Driver* cuda = gpu::driver();
        if (!cuda || gpu::avoided()) return;
        const gpu::Place place = gpu::place_of(*cuda, address);
        if (place.where != gpu::Where::device) return;
        ring_.offer(*cuda, place.device);
        offered_ = true;
    }

    // Whether what a receive got is a header of this process's ring. One that is not, or cannot be read, ends the program: its bytes are elsewhere.
    bool header_of(const Staged& staged, Header& header) {
        const bool seen = staged.buffer ? from_buffer(*staged.buffer, header) : staged.layout.node && first_bytes(staged, header);
        if (seen && header.magic != Header().magic) return false;
        if (seen ? ring_.at(header.identity, header.first, header.count) != nullptr : !ring_.busy()) return seen;
        std::fprintf(stderr, "warpwright.mpi: expected a message of %lld bytes, saw a header of another ring, or one that cannot be read; "
                             "unset WARPWRIGHT_MPI_PEER\n", static_cast<long long>(header_bytes));
        std::abort();
    }

    // Where they lie, for a device that reaches them; null for another. They are there when this returns.
    char* memory_of(const Header& header, int device) const {
        return device == ring_.device() && ring_.filled(header.first) ? ring_.at(header.identity, header.first, header.count) : nullptr;
    }

    // The bytes that a header stands for go where they belong, unless they are there, and the status counts them.
    int take(const Staged& staged, const Header& header, Status& status, bool moved) {
        const auto bytes = static_cast<Bytes>(header.bytes);
        char* memory = ring_.at(header.identity, header.first, header.count);
        int code = bytes > staged.layout.bytes() ? mpi_constant::error_truncate : 0;
        if (!moved && !ring_.filled(header.first)) code = mpi_constant::error_other;
        if (!code) {
            const Layout part = bytes < staged.layout.bytes() ? prefix(staged.layout, bytes) : staged.layout;
            gpu::Driver& cuda = *gpu::driver();
            const gpu::Place here = gpu::place_of(cuda, staged.base + part.offset), there{gpu::Where::device, ring_.device()};
            if (!moved && !gpu::copy(cuda, part, staged.base, memory, here, there, true)) code = mpi_constant::error_other;
            else status_set_elements(&status, packed_handle(), static_cast<Count>(bytes));
        }
        ring_.release(header.first, header.count);
        if (code == mpi_constant::error_other) return refused();
        return code ? raised(code) : 0;
    }

    // A process that probes sees lengths of messages: no more headers come, and one that is on its way is not to be seen.
    void probed() { ring_.close(); }
    void seen(Count bytes) {
        if (bytes != header_bytes || !ring_.busy()) return;
        std::fprintf(stderr, "warpwright.mpi: expected no probe of a message of GPU memory, saw one; unset WARPWRIGHT_MPI_PEER\n");
        std::abort();
    }

    void end() { ring_.remove(); }

private:
    bool find_out() {
        const std::lock_guard lock(guard_);
        if (const int known = state_.load(std::memory_order_relaxed)) return known == 1;
        const char* value = std::getenv("WARPWRIGHT_MPI_PEER");
        bool good = value && std::strcmp(value, "off") && std::strcmp(value, "");
        if (good && std::atoll(value) > header_bytes) least_ = std::atoll(value);
        for (const char* name : {"WARPWRIGHT_MPI_JOB", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
            if (const char* part = std::getenv(name)) job_.append(part).append(":");
        Handle parent = null_comm_handle();
        good = good && !job_.empty() && !comm_get_parent(&parent) && parent == null_comm_handle() && !comm_rank(world_handle(), &rank_) &&
               !comm_group(world_handle(), &world_);
        if (good) ring_.announce(name_of(rank_));
        state_.store(good ? 1 : 2, std::memory_order_release);
        return good;
    }

    std::string name_of(int rank) const {
        return "/warpwright-" + std::to_string(getuid()) + "-" + std::to_string(std::hash<std::string>()(job_)) + "-" + std::to_string(rank);
    }

    // Launch the kernel; its end is said by the device, or by this process when it has waited for it.
    static bool fill(gpu::Driver& cuda, int device, Remote& remote, const Layout& whole, char* start, Remote::Claim& claim) {
        const gpu::Use use(cuda, device);
        if (!use) return false;
        if (!gpu::run_layout(cuda, *use, whole, start, claim.memory, false, !claim.filled)) {
            cuda.wait(use->stream); // nothing may be written once the chunks are given back
            return false;
        }
        if (claim.filled && cuda.write(use->stream, claim.filled, Board::filled, 0) == 0) return true;
        const bool waited = !claim.filled || cuda.wait(use->stream) == 0;
        claim.filled = 0;
        if (waited) remote.tell(claim, true);
        return waited;
    }

    bool in_world(Handle comm, int peer, int& there) {
        int inter = 0;
        Handle group;
        if (comm_test_inter(comm, &inter) || inter || comm_group(comm, &group)) return false;
        const bool good = !group_translate_ranks(group, 1, &peer, world_, &there) && there != mpi_constant::undefined;
        group_free(&group);
        return good;
    }

    static bool from_buffer(const Buffer& buffer, Header& header) {
        if (buffer.kind == Memory::device)
            return gpu::copy(*gpu::driver(), dense(header_bytes), buffer.memory, reinterpret_cast<char*>(&header), {gpu::Where::device, buffer.device}, {}, false);
        std::memcpy(&header, buffer.memory, header_bytes);
        return true;
    }

    static bool first_bytes(const Staged& staged, Header& header) {
        if (staged.layout.bytes() < header_bytes) return false;
        const Layout part = staged.layout.bytes() == header_bytes ? staged.layout : prefix(staged.layout, header_bytes);
        gpu::Driver* cuda = gpu::driver();
        if (cuda) {
            const gpu::Place here = gpu::place_of(*cuda, staged.base + part.offset);
            if (here.where == gpu::Where::foreign) return false;
            if (here.where == gpu::Where::device) return gpu::copy(*cuda, part, staged.base, reinterpret_cast<char*>(&header), here, {}, false);
        }
        copy<Direction::pack>(part, staged.base, reinterpret_cast<char*>(&header), 0, header_bytes);
        return true;
    }

    std::atomic<int> state_{0}; // 1: on, 2: off
    std::mutex guard_;
    std::string job_;
    Bytes least_ = 16384;
    int rank_ = 0;
    Handle world_{};
    Ring ring_;
    std::atomic<bool> offered_{false};
    std::unordered_map<int, std::unique_ptr<Remote>> remotes_;
};

inline Rings rings;

} // namespace warpwright::mpi
