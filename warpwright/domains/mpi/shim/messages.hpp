// Point-to-point messages of derived datatypes: the bytes are packed here and travel as MPI_PACKED, which any peer may receive by any type.
#pragma once
#include "completions.hpp"

namespace warpwright::mpi {

struct Counter {
    std::atomic<std::uint64_t> served{0}, forwarded{0};
    // A plain add, without the bus lock: a count lost between two threads does no harm.
    static void add(std::atomic<std::uint64_t>& counter) { counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
    bool note(bool was_served) {
        add(was_served ? served : forwarded);
        return was_served;
    }
};

inline Counter packs, unpacks, sends, receives, persistents, by_ring;

// WARPWRIGHT_MPI=off: everything is forwarded.
inline const bool enabled = [] {
    const char* value = std::getenv("WARPWRIGHT_MPI");
    return !value || std::strcmp(value, "off") != 0;
}();

// A call of a type that is known to be the library's: found before anything else is done, so that it costs two or three nanoseconds.
inline bool forwarded(Handle datatype) {
    const Type* type = types.find(datatype);
    return !enabled || (type && type->forwarded);
}

// The same for a type that is known to be the library's wherever its buffer lies; `left` knows it from then on.
inline bool passed_on(Handle datatype) {
    const LeftAlone::Key key = LeftAlone::key_of(datatype); // of before the question: CUDA may come meanwhile
    const Type* type = types.find(datatype);
    if (enabled && !(type && left_alone(*type))) return false;
    left.add(key);
    return true;
}

// The library's function where a call is known to be its own, counted; null where that is not known, also at the first call.
template <class Call>
[[gnu::always_inline]] inline auto passed(const Call& original, Handle datatype, Counter& counter) {
    const auto function = original.known();
    if (!function || !left.has(datatype)) return decltype(function)(nullptr);
    Counter::add(counter.forwarded);
    return function;
}

// The same for a message, which may be one for a ring.
template <class Call>
[[gnu::always_inline]] inline auto passed_message(const Call& original, const void* base, Count count, Handle datatype, Counter& counter) {
    const auto function = original.known();
    if (!function || rings.may_be_on() || !(left.has(datatype) || settled.has(datatype, count, base))) return decltype(function)(nullptr);
    Counter::add(counter.forwarded);
    return function;
}

// The same where that has yet to be known.
inline bool untouched(Handle datatype, Counter& counter) {
    if (!passed_on(datatype) || (enabled && rings.on())) return false;
    Counter::add(counter.forwarded);
    return true;
}

// Where the object lies on a GPU that refused it, a library that knows no GPUs must not see it either.
inline bool hopeless(const Staged& staged) { return staged.hopeless && !knows_gpus(); }

template <class Size>
inline bool stage_message(const void* base, Size count, Handle datatype, int peer, Staged& staged, bool learn = true) {
    return !passed_on(datatype) && peer != mpi_constant::proc_null && stage(base, count, datatype, staged, learn);
}

// A buffer with the packed bytes, or with their header; where the GPU refuses, the message is the library's own.
template <class Size>
inline bool stage_send(const void* base, Size count, Handle datatype, int peer, Staged& staged) {
    if (!stage_message(base, count, datatype, peer, staged)) return false;
    if (staged.pack()) return true;
    staged.release();
    staged.hopeless = staged.device >= 0;
    return false;
}

// The same where the receiver may have a ring.
template <class Size>
inline bool stage_send(const void* base, Size count, Handle datatype, int peer, Handle comm, Staged& staged) {
    if (enabled && rings.on() && peer >= 0 && count > 0) {
        try {
            Type* type = types.get(datatype);
            if (type->known && by_ring.note(rings.send(base, type->whole(count), comm, peer, staged))) return true;
        } catch (const Overflow&) {
            return false;
        }
    }
    return stage_send(base, count, datatype, peer, staged);
}

// What a header that arrives at an object of the library's must know of it.
template <class Size>
inline void look_at(const void* base, Size count, Handle datatype, Staged& staged) {
    staged.base = const_cast<char*>(static_cast<const char*>(base));
    try {
        Type* type = types.get(datatype);
        if (type->known && count > 0) staged.layout = type->whole(count);
    } catch (const Overflow&) {
        staged.layout = {};
    }
}

// A receive: bytes that are staged, or, where headers may come, an object that is looked at when its message has arrived. `staged.buffer` tells which.
template <class Size>
inline bool expect(const void* base, Size count, Handle datatype, int peer, Staged& staged, bool learn = true) {
    const bool served = receives.note(stage_message(base, count, datatype, peer, staged, learn));
    if (!enabled || !rings.on() || peer == mpi_constant::proc_null || count <= 0) return served;
    if (hopeless(staged)) return false;
    if (!served) look_at(base, count, datatype, staged);
    if (staged.layout.node && base) rings.expect(staged.base + staged.layout.offset);
    return true;
}

template <class Size>
using Send = Original<int(const void*, Size, Handle, int, int, Handle)>;
template <class Size>
using Receive = Original<int(void*, Size, Handle, int, int, Handle, Status*)>;
template <class Size>
using Isend = Original<int(const void*, Size, Handle, int, int, Handle, Handle*)>;
template <class Size>
using Ireceive = Original<int(void*, Size, Handle, int, int, Handle, Handle*)>;

// What the library gets in place of the caller's arguments: the staged bytes or their header, where there are some.
template <class Base, class Size>
struct Wire {
    Base base;
    Size count;
    Handle datatype;

    Wire(Base base, Size count, Handle datatype, const Staged& staged) : base(base), count(count), datatype(datatype) {
        if (staged.buffer) this->base = staged.buffer->memory, this->count = static_cast<Size>(staged.sent()), this->datatype = packed_handle();
    }
};

template <class Size>
[[gnu::noinline]] int send(Send<Size>& original, const void* base, Size count, Handle datatype, int peer, int tag, Handle comm) {
    if (untouched(datatype, sends)) return original(base, count, datatype, peer, tag, comm);
    Staged staged;
    if (!sends.note(stage_send(base, count, datatype, peer, comm, staged)) && hopeless(staged)) return refused();
    const Wire wire(base, count, datatype, staged);
    int code = original(wire.base, wire.count, wire.datatype, peer, tag, comm);
    const bool sent = rings.sent(staged);
    if (code) staged.withdraw();
    staged.release();
    return code || sent ? code : refused();
}

template <class Size>
using MatchedReceive = Original<int(void*, Size, Handle, Handle*, Status*)>;
template <class Size>
using MatchedIreceive = Original<int(void*, Size, Handle, Handle*, Handle*)>;

// A message that a probe has matched: it is no header, because a process that probes has no ring.
template <class Size>
int receive_matched(MatchedReceive<Size>& original, void* base, Size count, Handle datatype, Handle* message, Status* status) {
    Operation operation;
    operation.receive = true;
    Staged& staged = operation.staged;
    if (!receives.note(stage_message(base, count, datatype, mpi_constant::any_source, staged)))
        return hopeless(staged) ? refused() : original(base, count, datatype, message, status);
    const Wire wire(base, count, datatype, staged);
    Status own, *seen = status == mpi_constant::status_ignore ? &own : status;
    int code = original(wire.base, wire.count, wire.datatype, message, seen);
    if (!code) code = deliver(operation, *seen);
    staged.release();
    return code;
}

template <class Size>
[[gnu::noinline]] int receive(Receive<Size>& original, void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Status* status) {
    if (untouched(datatype, receives)) return original(base, count, datatype, peer, tag, comm, status);
    Operation operation;
    operation.receive = true;
    Staged& staged = operation.staged;
    if (!expect(base, count, datatype, peer, staged)) return hopeless(staged) ? refused() : original(base, count, datatype, peer, tag, comm, status);
    const Wire wire(base, count, datatype, staged);
    Status own, *seen = status == mpi_constant::status_ignore ? &own : status;
    int code = original(wire.base, wire.count, wire.datatype, peer, tag, comm, seen);
    if (!code) code = deliver(operation, *seen);
    staged.release();
    return code;
}

// Note a request that the library has made for staged bytes; give the bytes back where it made none.
inline int noted(int code, const Staged& staged, bool is_receive, bool persistent, Handle* request) {
    auto* operation = new Operation{staged, is_receive, persistent, !persistent, false};
    if (!code) {
        requests.add(*request, operation);
        return code;
    }
    rings.sent(operation->staged);
    operation->staged.withdraw();
    Requests::drop(operation);
    return code;
}

template <class Size>
[[gnu::noinline]] int isend(Isend<Size>& original, const void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) {
    orphans.poll();
    if (untouched(datatype, sends)) return original(base, count, datatype, peer, tag, comm, request);
    Staged staged;
    if (!sends.note(stage_send(base, count, datatype, peer, comm, staged)))
        return hopeless(staged) ? refused() : original(base, count, datatype, peer, tag, comm, request);
    const Wire wire(base, count, datatype, staged);
    return noted(original(wire.base, wire.count, wire.datatype, peer, tag, comm, request), staged, false, false, request);
}

template <class Size>
[[gnu::noinline]] int ireceive(Ireceive<Size>& original, void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) {
    orphans.poll();
    if (untouched(datatype, receives)) return original(base, count, datatype, peer, tag, comm, request);
    Staged staged;
    if (!expect(base, count, datatype, peer, staged)) return hopeless(staged) ? refused() : original(base, count, datatype, peer, tag, comm, request);
    const Wire wire(base, count, datatype, staged);
    return noted(original(wire.base, wire.count, wire.datatype, peer, tag, comm, request), staged, true, false, request);
}

template <class Size>
int ireceive_matched(MatchedIreceive<Size>& original, void* base, Size count, Handle datatype, Handle* message, Handle* request) {
    orphans.poll();
    Staged staged;
    if (!receives.note(stage_message(base, count, datatype, mpi_constant::any_source, staged)))
        return hopeless(staged) ? refused() : original(base, count, datatype, message, request);
    const Wire wire(base, count, datatype, staged);
    return noted(original(wire.base, wire.count, wire.datatype, message, request), staged, true, false, request);
}

// A request of its own kind for every start: the number of bytes is fixed here, so that a header cannot stand for them.
template <class Size, class Base>
int persistent(Original<int(Base*, Size, Handle, int, int, Handle, Handle*)>& original, bool is_receive, Base* base, Size count, Handle datatype, int peer,
               int tag, Handle comm, Handle* request) {
    Staged staged;
    const bool staging = is_receive ? expect(base, count, datatype, peer, staged, false) : stage_message(base, count, datatype, peer, staged, false);
    persistents.note(staged.buffer != nullptr);
    if (!staging) return hopeless(staged) ? refused() : original(base, count, datatype, peer, tag, comm, request);
    const Wire wire(base, count, datatype, staged);
    return noted(original(wire.base, wire.count, wire.datatype, peer, tag, comm, request), staged, is_receive, true, request);
}

template <class Size>
using Exchange = Original<int(const void*, Size, Handle, int, int, void*, Size, Handle, int, int, Handle, Status*)>;

template <class Size>
int exchange(Exchange<Size>& original, const void* from, Size send_count, Handle send_type, int to_peer, int send_tag, void* to, Size receive_count,
             Handle receive_type, int from_peer, int receive_tag, Handle comm, Status* status) {
    Staged sent;
    Operation received;
    received.receive = true;
    const bool expected = expect(to, receive_count, receive_type, from_peer, received.staged);
    sends.note(stage_send(from, send_count, send_type, to_peer, comm, sent));
    int code = mpi_constant::error_other;
    if (hopeless(sent) || hopeless(received.staged)) {
        sent.withdraw();
        refused();
    } else {
        const Wire out(from, send_count, send_type, sent);
        const Wire in(to, receive_count, receive_type, received.staged);
        Status own, *seen = expected && status == mpi_constant::status_ignore ? &own : status;
        code = original(out.base, out.count, out.datatype, to_peer, send_tag, in.base, in.count, in.datatype, from_peer, receive_tag, comm, seen);
        const bool filled = rings.sent(sent);
        if (code) sent.withdraw();
        else if (expected) code = deliver(received, *seen);
        if (!code && !filled) code = refused();
    }
    sent.release(), received.staged.release();
    return code;
}

// Calls that are the library's own, but for a header that their receive may get.
template <class Size>
using Replace = Original<int(void*, Size, Handle, int, int, int, int, Handle, Status*)>;

template <class Size>
int replace(Replace<Size>& original, void* base, Size count, Handle datatype, int to_peer, int send_tag, int from_peer, int tag, Handle comm, Status* status) {
    if (!enabled || !rings.on() || from_peer == mpi_constant::proc_null) return original(base, count, datatype, to_peer, send_tag, from_peer, tag, comm, status);
    Operation received;
    received.receive = true;
    look_at(base, count, datatype, received.staged);
    Status own, *seen = status == mpi_constant::status_ignore ? &own : status;
    const int code = original(base, count, datatype, to_peer, send_tag, from_peer, tag, comm, seen);
    return code ? code : deliver(received, *seen);
}

// The same for a call that returns a request.
template <class Call>
int ireplace(void* base, Count count, Handle datatype, int from_peer, Handle* request, Call call) {
    const int code = call();
    if (code || !enabled || !rings.on() || from_peer == mpi_constant::proc_null) return code;
    Staged staged;
    look_at(base, count, datatype, staged);
    return noted(code, staged, true, false, request);
}

// A probe may see no header's length. `call` makes the library's call with a status.
template <class Call>
int probe(Status* status, const int* flag, Call call) {
    if (!enabled || !rings.on()) return call(status);
    rings.probed();
    Status own, *seen = status == mpi_constant::status_ignore ? &own : status;
    const int code = call(seen);
    Count bytes = 0;
    if (!code && (!flag || *flag) && !get_elements(seen, packed_handle(), &bytes)) rings.seen(bytes);
    return code;
}

} // namespace warpwright::mpi

// The calls themselves, with counts of one width; `_c` is the suffix of the large-count twins.
#define WARPWRIGHT_SEND(name, Size) \
    WARPWRIGHT_API int name(const void* base, Size count, Handle datatype, int peer, int tag, Handle comm) { \
        static constinit Send<Size> original(#name); \
        if (const auto call = passed_message(original, base, count, datatype, sends)) return call(base, count, datatype, peer, tag, comm); \
        return send(original, base, count, datatype, peer, tag, comm); \
    }
#define WARPWRIGHT_ISEND(name, Size) \
    WARPWRIGHT_API int name(const void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Isend<Size> original(#name); \
        if (orphans.none()) \
            if (const auto call = passed_message(original, base, count, datatype, sends)) return call(base, count, datatype, peer, tag, comm, request); \
        return isend(original, base, count, datatype, peer, tag, comm, request); \
    }
#define WARPWRIGHT_PERSISTENT_SEND(name, Size) \
    WARPWRIGHT_API int name(const void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Isend<Size> original(#name); \
        return persistent<Size, const void>(original, false, base, count, datatype, peer, tag, comm, request); \
    }
#define WARPWRIGHT_MESSAGES(suffix, Size) \
    WARPWRIGHT_SEND(MPI_Send##suffix, Size) \
    WARPWRIGHT_SEND(MPI_Ssend##suffix, Size) \
    WARPWRIGHT_SEND(MPI_Rsend##suffix, Size) \
    WARPWRIGHT_SEND(MPI_Bsend##suffix, Size) \
    WARPWRIGHT_ISEND(MPI_Isend##suffix, Size) \
    WARPWRIGHT_ISEND(MPI_Issend##suffix, Size) \
    WARPWRIGHT_ISEND(MPI_Irsend##suffix, Size) \
    WARPWRIGHT_ISEND(MPI_Ibsend##suffix, Size) \
    WARPWRIGHT_PERSISTENT_SEND(MPI_Send_init##suffix, Size) \
    WARPWRIGHT_PERSISTENT_SEND(MPI_Ssend_init##suffix, Size) \
    WARPWRIGHT_PERSISTENT_SEND(MPI_Rsend_init##suffix, Size) \
    WARPWRIGHT_PERSISTENT_SEND(MPI_Bsend_init##suffix, Size) \
    WARPWRIGHT_API int MPI_Recv##suffix(void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Status* status) { \
        static constinit Receive<Size> original("MPI_Recv" #suffix); \
        if (const auto call = passed_message(original, base, count, datatype, receives)) return call(base, count, datatype, peer, tag, comm, status); \
        return receive(original, base, count, datatype, peer, tag, comm, status); \
    } \
    WARPWRIGHT_API int MPI_Irecv##suffix(void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Ireceive<Size> original("MPI_Irecv" #suffix); \
        if (orphans.none()) \
            if (const auto call = passed_message(original, base, count, datatype, receives)) return call(base, count, datatype, peer, tag, comm, request); \
        return ireceive(original, base, count, datatype, peer, tag, comm, request); \
    } \
    WARPWRIGHT_API int MPI_Mrecv##suffix(void* base, Size count, Handle datatype, Handle* message, Status* status) { \
        static constinit MatchedReceive<Size> original("MPI_Mrecv" #suffix); \
        return receive_matched(original, base, count, datatype, message, status); \
    } \
    WARPWRIGHT_API int MPI_Imrecv##suffix(void* base, Size count, Handle datatype, Handle* message, Handle* request) { \
        static constinit MatchedIreceive<Size> original("MPI_Imrecv" #suffix); \
        return ireceive_matched(original, base, count, datatype, message, request); \
    } \
    WARPWRIGHT_API int MPI_Recv_init##suffix(void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Ireceive<Size> original("MPI_Recv_init" #suffix); \
        return persistent<Size, void>(original, true, base, count, datatype, peer, tag, comm, request); \
    } \
    WARPWRIGHT_API int MPI_Sendrecv##suffix(const void* from, Size send_count, Handle send_type, int to_peer, int send_tag, void* to, \
                                            Size receive_count, Handle receive_type, int from_peer, int receive_tag, Handle comm, Status* status) { \
        static constinit Exchange<Size> original("MPI_Sendrecv" #suffix); \
        return exchange(original, from, send_count, send_type, to_peer, send_tag, to, receive_count, receive_type, from_peer, receive_tag, comm, status); \
    } \
    WARPWRIGHT_API int MPI_Sendrecv_replace##suffix(void* base, Size count, Handle datatype, int to_peer, int send_tag, int from_peer, int tag, \
                                                    Handle comm, Status* status) { \
        static constinit Replace<Size> original("MPI_Sendrecv_replace" #suffix); \
        return replace(original, base, count, datatype, to_peer, send_tag, from_peer, tag, comm, status); \
    }

WARPWRIGHT_API int MPI_Probe(int peer, int tag, Handle comm, Status* status) {
    static constinit Original<int(int, int, Handle, Status*)> original("MPI_Probe");
    return probe(status, nullptr, [&](Status* seen) { return original(peer, tag, comm, seen); });
}

WARPWRIGHT_API int MPI_Iprobe(int peer, int tag, Handle comm, int* flag, Status* status) {
    static constinit Original<int(int, int, Handle, int*, Status*)> original("MPI_Iprobe");
    return probe(status, flag, [&](Status* seen) { return original(peer, tag, comm, flag, seen); });
}

WARPWRIGHT_API int MPI_Mprobe(int peer, int tag, Handle comm, Handle* message, Status* status) {
    static constinit Original<int(int, int, Handle, Handle*, Status*)> original("MPI_Mprobe");
    return probe(status, nullptr, [&](Status* seen) { return original(peer, tag, comm, message, seen); });
}

WARPWRIGHT_API int MPI_Improbe(int peer, int tag, Handle comm, int* flag, Handle* message, Status* status) {
    static constinit Original<int(int, int, Handle, int*, Handle*, Status*)> original("MPI_Improbe");
    return probe(status, flag, [&](Status* seen) { return original(peer, tag, comm, flag, message, seen); });
}

// Only for a library that has them: mpi4py takes what is there for what works.
#define WARPWRIGHT_ISENDRECV_CALLS(suffix, Size) \
    WARPWRIGHT_API int MPI_Isendrecv##suffix(const void* from, Size send_count, Handle send_type, int to_peer, int send_tag, void* to, Size count, \
                                             Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Original<int(const void*, Size, Handle, int, int, void*, Size, Handle, int, int, Handle, Handle*)> original("MPI_Isendrecv" #suffix); \
        return ireplace(to, count, datatype, peer, request, [&] { \
            return original(from, send_count, send_type, to_peer, send_tag, to, count, datatype, peer, tag, comm, request); \
        }); \
    } \
    WARPWRIGHT_API int MPI_Isendrecv_replace##suffix(void* base, Size count, Handle datatype, int to_peer, int send_tag, int peer, int tag, \
                                                     Handle comm, Handle* request) { \
        static constinit Original<int(void*, Size, Handle, int, int, int, int, Handle, Handle*)> original("MPI_Isendrecv_replace" #suffix); \
        return ireplace(base, count, datatype, peer, request, [&] { return original(base, count, datatype, to_peer, send_tag, peer, tag, comm, request); }); \
    }

WARPWRIGHT_MESSAGES(, int)
#ifdef WARPWRIGHT_ISENDRECV
WARPWRIGHT_ISENDRECV_CALLS(, int)
#endif
#ifdef WARPWRIGHT_LARGE
WARPWRIGHT_MESSAGES(_c, Count)
#ifdef WARPWRIGHT_ISENDRECV
WARPWRIGHT_ISENDRECV_CALLS(_c, Count)
#endif
#endif
