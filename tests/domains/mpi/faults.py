"""Run by mpiexec: what goes wrong in a program, and what must come of it. The argument names the case; rank 0 prints "right" where it ends well.

WITHOUT names the rank that runs without the shim.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
if os.environ.get("WITHOUT") == str(RANK):
    os.environ["WARPWRIGHT_MPI"] = "off"

import warpwright.mpi  # noqa: E402

# isort: split
from mpi4py import MPI  # noqa: E402

COMM = MPI.COMM_WORLD
PEER = 1 - RANK
N = 128


def columns(count: int = 3) -> MPI.Datatype:
    """Return a type of the first columns of a matrix of N rows and N columns."""
    return MPI.DOUBLE.Create_vector(N, count, N).Commit()


def matrix(rank: int) -> np.ndarray:
    return np.arange(float(N * N)).reshape(N, N) + rank


def truncated() -> bool:
    """A message longer than the receiver's type is the library's own error, and the next message is right."""
    column, target = columns(), np.zeros((N, N))
    if RANK == 0:
        COMM.Send([matrix(0), 1, column], 1, 1)
        COMM.Send([matrix(0), 1, column], 1, 2)
        return True
    shorter = MPI.DOUBLE.Create_vector(N // 2, 3, N).Commit()
    try:
        COMM.Recv([target, 1, shorter], 0, 1)
        good = False
    except MPI.Exception as error:
        good = error.Get_error_class() == MPI.ERR_TRUNCATE
    target[...] = 0
    COMM.Recv([target, 1, column], 0, 2)
    return good and np.array_equal(target[:, :3], matrix(0)[:, :3]) and not target[:, 3:].any()


def cancelled() -> bool:
    """A receive that is cancelled delivers nothing; its buffer is used by the next."""
    column, target = columns(), np.full((N, N), 7.0)
    request = COMM.Irecv([target, 1, column], PEER, 99)
    request.Cancel()
    status = MPI.Status()
    request.Wait(status)
    good = status.Is_cancelled() and (target == 7).all()
    COMM.Sendrecv([matrix(RANK), 1, column], PEER, 1, [target, 1, column], PEER, 1)
    return bool(good and np.array_equal(target[:, :3], matrix(PEER)[:, :3]) and (target[:, 3:] == 7).all())


def freed() -> bool:
    """A request and a type that are freed while the message is on its way; the bytes arrive."""
    column, target = columns(), np.zeros((N, N))
    source = matrix(RANK)
    COMM.Barrier()
    request = COMM.Isend([source, 1, column], PEER, 1)
    column.Free()
    request.Free()
    source[...] = -1 if os.environ.get("WARPWRIGHT_MPI") != "off" else source  # the bytes were packed at once
    column = columns()
    COMM.Recv([target, 1, column], PEER, 1)
    return np.array_equal(target[:, :3], matrix(PEER)[:, :3])


def collective() -> bool:
    """A process without the shim takes part in collectives with those that have it."""
    column, size = columns(1).Create_resized(0, 8).Commit(), COMM.Get_size()
    source, target = matrix(RANK), np.zeros((size, N))
    COMM.Alltoall([source, 1, column], [target, N, MPI.DOUBLE])
    good = all(np.array_equal(target[rank], matrix(rank)[:, RANK]) for rank in range(size))
    back = np.zeros((N, N))
    COMM.Alltoall([target, N, MPI.DOUBLE], [back, 1, column])
    COMM.Ialltoallw([source, [1] * size, [8 * rank for rank in range(size)], [column] * size],
                    [back, [1] * size, [8 * rank for rank in range(size)], [column] * size]).Wait()  # fmt: skip
    return good and all(np.array_equal(back[:, rank], matrix(rank)[:, RANK]) for rank in range(size)) and not back[:, size:].any()


def threads() -> bool:
    """Eight threads with a communicator each: collectives and messages all at once."""
    comms = [COMM.Dup() for _ in range(8)]

    def work(number: int) -> bool:
        good, comm = True, comms[number]
        for turn in range(20):
            column = MPI.DOUBLE.Create_vector(N, 1 + turn % 3, N).Create_resized(0, 8).Commit()
            source, target = matrix(RANK + number), np.zeros((N, N))
            places = [8 * 4 * rank for rank in range(2)]
            request = comm.Ialltoallw([source, [1, 1], places, [column] * 2], [target, [1, 1], places, [column] * 2])
            column.Free()
            request.Wait()
            width = 1 + turn % 3
            good = good and all(
                np.array_equal(target[:, 4 * rank : 4 * rank + width], matrix(rank + number)[:, 4 * RANK : 4 * RANK + width]) for rank in range(2)
            )
        return good

    with ThreadPoolExecutor(8) as pool:
        return all(pool.map(work, range(8)))


def contiguous() -> bool:
    """GPU memory without holes, under a library that takes none: predefined types and derived ones, sends, receives, MPI_Pack."""
    from fakegpu import FakeGpu

    gpu = FakeGpu(os.environ["FAKE_CUDA"])
    content = np.arange(4096, dtype=np.uint8) + np.uint8(RANK)
    base, target = gpu.allocate(4096), gpu.allocate(4096)
    gpu.write(base, content)
    three = MPI.DOUBLE.Create_contiguous(3).Commit()
    good = True
    for tag, (count, kind) in enumerate(((100, MPI.DOUBLE), (5, three), (4096, MPI.BYTE))):
        size = count * kind.size
        gpu.write(target, np.full(4096, 9, np.uint8))
        out, back = ([MPI.buffer.fromaddress(one, 4096), count, kind] for one in (base, target))
        MPI.Request.Waitall([COMM.Irecv(back, PEER, tag), COMM.Isend(out, PEER, tag)])
        arrived = gpu.read(target, 4096)
        theirs = np.arange(4096, dtype=np.uint8) + np.uint8(PEER)
        good = good and np.array_equal(arrived[:size], theirs[:size]) and bool((arrived[size:] == 9).all())
        packed = np.zeros(4096, np.uint8)
        kind.Pack(out[0], packed, 0, COMM) if kind.size == 1 else None
        good = good and (kind.size > 1 or np.array_equal(packed, content))
    return good


class OnGpu:
    """Objects of a column type on the fake driver's GPU."""

    def __init__(self, count: int = 3, rows: int = N) -> None:
        """Load the driver; the type has `count` of each row's N elements."""
        from fakegpu import FakeGpu

        self.gpu, self.rows = FakeGpu(os.environ["FAKE_CUDA"]), rows
        self.type = MPI.DOUBLE.Create_vector(rows, count, N).Commit()
        self.columns = (slice(None), slice(0, count))

    def message(self, content: np.ndarray) -> tuple[int, list[object]]:
        """Return memory with this content, and the message of its object."""
        address = self.gpu.allocate(content.nbytes)
        self.gpu.write(address, content)
        return address, [MPI.buffer.fromaddress(address, content.nbytes), 1, self.type]

    def holds(self, address: int, before: np.ndarray, arrived: np.ndarray) -> bool:
        """Whether the object's elements arrived and the others are as before."""
        expected = before.copy()
        expected[self.columns] = arrived[self.columns]
        return np.array_equal(self.gpu.read(address, before.nbytes).view(float).reshape(before.shape), expected)


def exhausted() -> bool:
    """No memory can be had, and no code of kernels, in process 1, then in both; then there is some again."""
    made = OnGpu()
    _, sent = made.message(matrix(RANK))
    good = True
    for turn, full in enumerate((RANK == 1, True, False)):
        address, received = made.message(before := matrix(7))
        made.gpu.driver.fake_exhaust(int(full))
        MPI.Request.Waitall([COMM.Irecv(received, PEER, turn), COMM.Isend(sent, PEER, turn)])
        packed = np.zeros(3 * N)
        made.type.Pack(sent[0], packed, 0, COMM)
        made.gpu.driver.fake_exhaust(0)
        good = good and made.holds(address, before, matrix(PEER)) and np.array_equal(packed, matrix(RANK)[made.columns].reshape(-1))
        COMM.Barrier()
    return good


def refused() -> bool:
    """The driver refuses every copy of a message: an exception of the library's own, on whichever side it is."""
    made = OnGpu()
    _, sent = made.message(matrix(RANK))
    _, received = made.message(matrix(7))
    good = True
    for turn, (rank, call) in enumerate(((0, COMM.Send), (1, COMM.Recv), (1, lambda message, peer, tag: COMM.Irecv(message, peer, tag).Wait()))):
        if turn and RANK == 0:
            COMM.Send(sent, 1, turn)
        if rank != RANK:
            continue
        made.gpu.driver.fake_broken(1)
        try:
            call(received if turn else sent, PEER, turn)
            good = False
        except MPI.Exception as error:
            good = good and error.Get_error_class() == MPI.ERR_OTHER
        made.gpu.driver.fake_broken(0)
    return good


def ring() -> bool:
    """Through a ring: messages for host memory, too long ones, ones in place, ones as long as a header."""
    made, column = OnGpu(128), None
    whole = matrix(PEER)
    address, received = made.message(matrix(7))
    _, sent = made.message(matrix(RANK))
    good = True
    for turn in range(3):  # the first may go through the host: nobody has offered a ring yet
        MPI.Request.Waitall([COMM.Irecv(received, PEER, turn), COMM.Isend(sent, PEER, turn)])
        good = good and made.holds(address, matrix(7), whole)
    host, status = np.zeros((N, N)), MPI.Status()
    COMM.Sendrecv(sent, PEER, 5, [host, MPI.DOUBLE], PEER, 5, status)  # contiguous on the host
    good = good and np.array_equal(host, whole) and status.Get_count(MPI.DOUBLE) == N * N
    host[...] = 0
    request = COMM.Irecv([host, MPI.DOUBLE], PEER, 6)
    COMM.Send(sent, PEER, 6)
    request.Wait(status)
    good = good and np.array_equal(host, whole) and status.Get_count(MPI.DOUBLE) == N * N
    column = columns(3).Create_resized(0, 24).Commit()
    request = COMM.Irecv([host, 1, column], PEER, 7)  # too short
    COMM.Send(sent, PEER, 7)
    try:
        request.Wait()
        good = False
    except MPI.Exception as error:
        good = good and error.Get_error_class() == MPI.ERR_TRUNCATE
    small = np.full(14, RANK, float)
    COMM.Sendrecv_replace([small, MPI.DOUBLE], PEER, 8, PEER, 8)  # as long as a header
    good = good and bool((small == PEER).all())
    if MPI.VERSION >= 4:
        host[...] = 0
        request = COMM.Isendrecv([small, MPI.DOUBLE], PEER, 20, [host, MPI.DOUBLE], PEER, 21)
        COMM.Send(sent, PEER, 21)
        COMM.Recv([small, MPI.DOUBLE], PEER, 20)
        request.Wait()
        good = good and np.array_equal(host, whole)
    requests = [COMM.Irecv(received, PEER, 9 + i) for i in range(2)]
    sends = [COMM.Isend(sent, PEER, 9 + i) for i in range(2)]
    MPI.Request.Waitall([*requests, *sends])
    return good and made.holds(address, matrix(7), whole) and warpwright.mpi.counts()["ring"]["served"] > 5


def lost() -> bool:
    """A kernel fails when its header is on the way: an error of both processes, and the next message is right."""
    made = OnGpu(128)
    address, received = made.message(matrix(7))
    _, sent = made.message(matrix(RANK))
    for turn in range(2):
        MPI.Request.Waitall([COMM.Irecv(received, PEER, turn), COMM.Isend(sent, PEER, turn)])
    COMM.Barrier()
    before = warpwright.mpi.counts()["ring"]["served"]
    made.gpu.driver.fake_lose(int(RANK == 0))
    try:
        COMM.Send(sent, 1, 5) if RANK == 0 else COMM.Recv(received, 0, 5)
        good = False
    except MPI.Exception as error:
        good = error.Get_error_class() == MPI.ERR_OTHER
    made.gpu.driver.fake_lose(0)
    good = good and (RANK == 1 or warpwright.mpi.counts()["ring"]["served"] == before + 1)
    MPI.Request.Waitall([COMM.Irecv(received, PEER, 6), COMM.Isend(sent, PEER, 6)])
    return good and made.holds(address, matrix(7), matrix(PEER))


def grouped() -> bool:
    """What completes together is unpacked in one launch, and what starts together is packed in one."""
    made = OnGpu()
    sent = [made.message(matrix(RANK + 2 * i))[1] for i in range(4)]
    received = [made.message(matrix(7)) for _ in range(4)]
    receives = [COMM.Recv_init(message, PEER, i) for i, (_, message) in enumerate(received)]
    sends = [COMM.Send_init(message, PEER, i) for i, message in enumerate(sent)]
    good = True
    for turn in range(3):
        before = made.gpu.driver.fake_launches()
        if turn < 2:
            MPI.Prequest.Startall([*receives, *sends])
            MPI.Request.Waitall([*receives, *sends])
        else:
            requests = [COMM.Irecv(message, PEER, i) for i, (_, message) in enumerate(received)]
            MPI.Request.Waitall([*requests, *(COMM.Isend(message, PEER, i) for i, message in enumerate(sent))])
        launches = made.gpu.driver.fake_launches() - before
        good = good and (launches == (2, 2, 5)[turn] or turn == 0)  # the first turn tries the ways of waiting
        good = good and all(made.holds(address, matrix(7), matrix(PEER + 2 * i)) for i, (address, _) in enumerate(received))
    for request in (*receives, *sends):
        request.Free()
    return good


def dies() -> bool:
    """A process is killed while the other waits for its bytes: the launcher ends the job."""
    column, target = columns(), np.zeros((N, N))
    COMM.Barrier()
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    MPI.Request.Waitall([COMM.Irecv([target, 1, column], 1, tag) for tag in range(3)])
    return False


if __name__ == "__main__":
    right = globals()[sys.argv[1]]()
    if COMM.allreduce(int(right)) == COMM.Get_size() and RANK == 0:
        served = sum(kind["served"] for kind in warpwright.mpi.counts().values())
        print("right", served)
    sys.exit(not right)
