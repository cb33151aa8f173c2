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

inline Counter packs, unpacks, sends, receives, persistents;

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

// The same for a type that is known to be the library's wherever its buffer lies.
inline bool passed_on(Handle datatype) {
    const Type* type = types.find(datatype);
    return !enabled || (type && left_alone(*type));
}

template <class Size>
inline bool stage_message(const void* base, Size count, Handle datatype, int peer, Staged& staged) {
    return !passed_on(datatype) && peer != mpi_constant::proc_null && stage(base, count, datatype, staged);
}

// A buffer with the packed bytes; where the GPU refuses, the message is the library's own.
template <class Size>
inline bool stage_send(const void* base, Size count, Handle datatype, int peer, Staged& staged) {
    if (!stage_message(base, count, datatype, peer, staged)) return false;
    if (staged.pack()) return true;
    staged.release();
    return false;
}

template <class Size>
using Send = Original<int(const void*, Size, Handle, int, int, Handle)>;
template <class Size>
using Receive = Original<int(void*, Size, Handle, int, int, Handle, Status*)>;
template <class Size>
using Isend = Original<int(const void*, Size, Handle, int, int, Handle, Handle*)>;
template <class Size>
using Ireceive = Original<int(void*, Size, Handle, int, int, Handle, Handle*)>;

template <class Size>
int send(Send<Size>& original, const void* base, Size count, Handle datatype, int peer, int tag, Handle comm) {
    Staged staged;
    if (!sends.note(stage_send(base, count, datatype, peer, staged))) return original(base, count, datatype, peer, tag, comm);
    const int code = original(staged.buffer->memory, static_cast<Size>(staged.bytes()), packed_handle(), peer, tag, comm);
    staged.release();
    return code;
}

template <class Size>
int receive(Receive<Size>& original, void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Status* status) {
    Operation operation;
    operation.receive = true;
    if (!receives.note(stage_message(base, count, datatype, peer, operation.staged))) return original(base, count, datatype, peer, tag, comm, status);
    Status own, *seen = status == mpi_constant::status_ignore ? &own : status;
    const int code = original(operation.staged.buffer->memory, static_cast<Size>(operation.staged.bytes()), packed_handle(), peer, tag, comm, seen);
    if (!code) deliver(operation, *seen);
    operation.staged.release();
    return code;
}

// Note a request that the library has made for staged bytes; give the bytes back where it made none.
inline int noted(int code, const Staged& staged, bool is_receive, bool persistent, Handle* request) {
    auto* operation = new Operation{staged, is_receive, persistent, !persistent, false};
    if (code) Requests::drop(operation);
    else requests.add(*request, operation);
    return code;
}

template <class Size>
int isend(Isend<Size>& original, const void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) {
    orphans.poll();
    Staged staged;
    if (!sends.note(stage_send(base, count, datatype, peer, staged))) return original(base, count, datatype, peer, tag, comm, request);
    const int code = original(staged.buffer->memory, static_cast<Size>(staged.bytes()), packed_handle(), peer, tag, comm, request);
    return noted(code, staged, false, false, request);
}

template <class Size>
int ireceive(Ireceive<Size>& original, void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) {
    orphans.poll();
    Staged staged;
    if (!receives.note(stage_message(base, count, datatype, peer, staged))) return original(base, count, datatype, peer, tag, comm, request);
    const int code = original(staged.buffer->memory, static_cast<Size>(staged.bytes()), packed_handle(), peer, tag, comm, request);
    return noted(code, staged, true, false, request);
}

template <class Size, class Base>
int persistent(Original<int(Base*, Size, Handle, int, int, Handle, Handle*)>& original, bool is_receive, Base* base, Size count, Handle datatype, int peer,
               int tag, Handle comm, Handle* request) {
    Staged staged;
    if (!persistents.note(stage_message(base, count, datatype, peer, staged))) return original(base, count, datatype, peer, tag, comm, request);
    const int code = original(staged.buffer->memory, static_cast<Size>(staged.bytes()), packed_handle(), peer, tag, comm, request);
    return noted(code, staged, is_receive, true, request);
}

template <class Size>
using Exchange = Original<int(const void*, Size, Handle, int, int, void*, Size, Handle, int, int, Handle, Status*)>;

template <class Size>
int exchange(Exchange<Size>& original, const void* from, Size send_count, Handle send_type, int to_peer, int send_tag, void* to, Size receive_count,
             Handle receive_type, int from_peer, int receive_tag, Handle comm, Status* status) {
    Staged sent;
    Operation received;
    received.receive = true;
    const bool send_staged = sends.note(stage_send(from, send_count, send_type, to_peer, sent));
    const bool receive_staged = receives.note(stage_message(to, receive_count, receive_type, from_peer, received.staged));
    if (send_staged) from = sent.buffer->memory, send_count = static_cast<Size>(sent.bytes()), send_type = packed_handle();
    Status own, *seen = status;
    if (receive_staged) {
        to = received.staged.buffer->memory, receive_count = static_cast<Size>(received.staged.bytes()), receive_type = packed_handle();
        if (status == mpi_constant::status_ignore) seen = &own;
    }
    const int code = original(from, send_count, send_type, to_peer, send_tag, to, receive_count, receive_type, from_peer, receive_tag, comm, seen);
    if (!code && receive_staged) deliver(received, *seen);
    sent.release(), received.staged.release();
    return code;
}

} // namespace warpwright::mpi

// The calls themselves, with counts of one width; `_c` is the suffix of the large-count twins.
#define WARPWRIGHT_SEND(name, Size) \
    WARPWRIGHT_API int name(const void* base, Size count, Handle datatype, int peer, int tag, Handle comm) { \
        static constinit Send<Size> original(#name); \
        return send(original, base, count, datatype, peer, tag, comm); \
    }
#define WARPWRIGHT_ISEND(name, Size) \
    WARPWRIGHT_API int name(const void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Isend<Size> original(#name); \
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
    WARPWRIGHT_ISEND(MPI_Isend##suffix, Size) \
    WARPWRIGHT_ISEND(MPI_Issend##suffix, Size) \
    WARPWRIGHT_ISEND(MPI_Irsend##suffix, Size) \
    WARPWRIGHT_PERSISTENT_SEND(MPI_Send_init##suffix, Size) \
    WARPWRIGHT_PERSISTENT_SEND(MPI_Ssend_init##suffix, Size) \
    WARPWRIGHT_PERSISTENT_SEND(MPI_Rsend_init##suffix, Size) \
    WARPWRIGHT_API int MPI_Recv##suffix(void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Status* status) { \
        static constinit Receive<Size> original("MPI_Recv" #suffix); \
        return receive(original, base, count, datatype, peer, tag, comm, status); \
    } \
    WARPWRIGHT_API int MPI_Irecv##suffix(void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Ireceive<Size> original("MPI_Irecv" #suffix); \
        return ireceive(original, base, count, datatype, peer, tag, comm, request); \
    } \
    WARPWRIGHT_API int MPI_Recv_init##suffix(void* base, Size count, Handle datatype, int peer, int tag, Handle comm, Handle* request) { \
        static constinit Ireceive<Size> original("MPI_Recv_init" #suffix); \
        return persistent<Size, void>(original, true, base, count, datatype, peer, tag, comm, request); \
    } \
    WARPWRIGHT_API int MPI_Sendrecv##suffix(const void* from, Size send_count, Handle send_type, int to_peer, int send_tag, void* to, \
                                            Size receive_count, Handle receive_type, int from_peer, int receive_tag, Handle comm, Status* status) { \
        static constinit Exchange<Size> original("MPI_Sendrecv" #suffix); \
        return exchange(original, from, send_count, send_type, to_peer, send_tag, to, receive_count, receive_type, from_peer, receive_tag, comm, status); \
    }

WARPWRIGHT_MESSAGES(, int)
#ifdef WARPWRIGHT_LARGE
WARPWRIGHT_MESSAGES(_c, Count)
#endif
