"""Run by mpiexec on two processes: what a program can see of messages, case by case, as one JSON line of rank 0.

With the shim and without it, it must be the same. Every answer is made of bytes that arrived, statuses, counts, flags, indices and classes of errors.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import warpwright.mpi

# isort: split
from mpi4py import MPI

COMM = MPI.COMM_WORLD.Dup()
RANK = COMM.Get_rank()
PEER = 1 - RANK
N = 64
COMM.Set_errhandler(MPI.ERRORS_RETURN)
MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)


def columns(count: int = 3, rows: int = N) -> MPI.Datatype:
    """Return a type of the first columns of a matrix of N columns."""
    return MPI.DOUBLE.Create_vector(rows, count, N).Commit()


def matrix(add: int = 0) -> np.ndarray:
    return np.arange(float(N * N)).reshape(N, N) + 1000 * RANK + add


def zeros() -> np.ndarray:
    return np.zeros((N, N))


def seen(array: np.ndarray) -> int:
    """Return a number made of an array's bytes."""
    return zlib.crc32(array.tobytes())


def told(status: MPI.Status, datatype: MPI.Datatype) -> list[int]:
    """Return what a status says."""
    counts = [status.Get_count(datatype), status.Get_elements(datatype), status.Get_count(MPI.BYTE)]
    return [status.source, status.tag, int(status.Is_cancelled()), *counts]


def failing(call: Callable[[], Any]) -> Any:
    """Return the class of a call's error, or what it returns."""
    try:
        return call()
    except MPI.Exception as error:
        return f"error class {error.Get_error_class()}"


def probes() -> Any:
    """MPI_Probe, Mprobe with Mrecv, Improbe with Imrecv, of messages that are longer, shorter and of other types than what receives them."""
    column, short, status, answers = columns(), columns(rows=N // 2), MPI.Status(), []
    for turn, sent in enumerate((column, short)):
        request = COMM.Isend([matrix(turn), 1, sent], PEER, turn)
        COMM.Probe(MPI.ANY_SOURCE, turn, status)
        answers.append(told(status, column))
        target = zeros()
        COMM.Recv([target, 1, column], status.source, turn, status)
        answers += [told(status, column), seen(target)]
        request.Wait()
        request = COMM.Isend([matrix(turn), 1, sent], PEER, turn)
        message, target = COMM.Mprobe(PEER, MPI.ANY_TAG, status), zeros()
        answers.append(told(status, column))
        message.Recv([target, 1, column], status)
        answers += [told(status, column), seen(target)]
        request.Wait()
        request = COMM.Isend([matrix(turn), 1, sent], PEER, turn)
        found = None
        while found is None:
            found = COMM.Improbe(PEER, turn, status)
        target = zeros()
        received = found.Irecv([target, 1, column])
        received.Wait(status)
        answers += [told(status, column), seen(target)]
        request.Wait()
    nobody, target = COMM.Mprobe(MPI.PROC_NULL, 0, status), zeros()
    answers.append(told(status, column))
    nobody.Recv([target, 1, column], status)
    return [*answers, told(status, column), seen(target)]


def matched_too_long() -> Any:
    """A matched message that is longer than the type that receives it."""
    column, short, target = columns(), columns(rows=N // 2), zeros()
    request = COMM.Isend([matrix(), 1, column], PEER, 0)
    answer = failing(lambda: COMM.Mprobe(PEER, 0).Recv([target, 1, short]))
    request.Wait()
    return answer


def modes() -> Any:
    """Buffered sends with no more room than the standard asks for, synchronous ones, replacing ones."""
    column, status, answers = columns(), MPI.Status(), []
    MPI.Attach_buffer(bytearray(3 * (column.Pack_size(1, COMM) + MPI.BSEND_OVERHEAD)))
    target = zeros()
    COMM.Bsend([matrix(1), 1, column], PEER, 1)
    request = COMM.Ibsend([matrix(2), 1, column], PEER, 2)
    source = matrix(3)
    again = COMM.Bsend_init([source, 1, column], PEER, 3)
    again.Start()
    for tag in (1, 2, 3):
        COMM.Recv([target, 1, column], PEER, tag, status)
        answers += [told(status, column), seen(target)]
    MPI.Request.Waitall([request, again])
    source += 5
    again.Start()
    COMM.Recv([target, 1, column], PEER, 3, status)
    answers += [told(status, column), seen(target)]
    again.Wait()
    again.Free()
    MPI.Detach_buffer()
    both = matrix(4)
    COMM.Sendrecv_replace([both, 1, column], PEER, 4, PEER, MPI.ANY_TAG, status)
    answers += [told(status, column), seen(both)]
    request = COMM.Issend([matrix(6), 1, column], PEER, 5)
    COMM.Recv([target, 1, column], MPI.ANY_SOURCE, MPI.ANY_TAG, status)
    request.Wait()
    return [*answers, told(status, column), seen(target)]


def nobody() -> Any:
    """MPI_PROC_NULL everywhere."""
    column, target, status, answers = columns(), zeros(), MPI.Status(), []
    COMM.Send([matrix(), 1, column], MPI.PROC_NULL, 1)
    COMM.Recv([target, 1, column], MPI.PROC_NULL, 1, status)
    answers.append(told(status, column))
    requests = [COMM.Isend([matrix(), 1, column], MPI.PROC_NULL, 1), COMM.Irecv([target, 1, column], MPI.PROC_NULL, 1)]
    statuses = [MPI.Status(), MPI.Status()]
    MPI.Request.Waitall(requests, statuses)
    answers.append(told(statuses[1], column))
    COMM.Sendrecv([matrix(), 1, column], PEER, 2, [target, 1, column], MPI.PROC_NULL, 2, status)
    answers.append(told(status, column))
    COMM.Sendrecv([matrix(), 1, column], MPI.PROC_NULL, 2, [target, 1, column], PEER, 2, status)
    return [*answers, told(status, column), seen(target)]


def inactive() -> Any:
    """Null requests, inactive persistent ones and ones that are done among those of every completion call."""
    column, target, answers = columns(), zeros(), []
    persistent = COMM.Recv_init([zeros(), 1, column], PEER, 9)
    for way in ("Waitall", "Testall", "Waitany", "Testany", "Waitsome", "Testsome"):
        target[...] = 0
        COMM.Barrier()
        requests = [MPI.REQUEST_NULL, persistent, COMM.Irecv([target, 1, column], PEER, 1), MPI.REQUEST_NULL]
        sent = COMM.Isend([matrix(), 1, column], PEER, 1)
        sent.Wait()
        statuses, call = [MPI.Status() for _ in requests], getattr(MPI.Request, way)
        if way in ("Waitall", "Testall"):
            done = call(requests, statuses)
            while done is False:
                done = call(requests, statuses)
            answers.append([told(one, column) for one in statuses])
        elif way == "Waitany":
            answers.append([call(requests, statuses[0]), told(statuses[0], column)])
        elif way == "Testany":
            flag = False
            while not flag:
                index, flag = call(requests, statuses[0])
            answers.append([index, told(statuses[0], column)])
        else:
            indices = call(requests, statuses)
            while not indices:
                indices = call(requests, statuses)
            answers.append([indices, told(statuses[0], column)])
        rest = MPI.Status()
        answers += [seen(target), [one == MPI.REQUEST_NULL for one in requests], MPI.Request.Waitany(requests, rest), told(rest, column)]
        answers += [MPI.Request.Testany(requests), MPI.Request.Waitsome(requests), MPI.Request.Testsome(requests), MPI.Request.Testall(requests)]
        answers += [persistent.Test(rest), told(rest, column)]
    persistent.Free()
    return answers


def cut_short() -> Any:
    """Counts and elements of messages that are shorter than the type, in the middle of an object and of several."""
    column, status, answers = columns(), MPI.Status(), []
    sent = matrix()
    for length in (0, 1, 3 * N - 1, 3 * N, 3 * N + 5, 6 * N):
        target = np.zeros((2 * N, N))
        two = column.Create_resized(0, 8 * N * N).Commit()
        request = COMM.Irecv([target, 2, two], PEER, 1)
        COMM.Send([sent, length, MPI.DOUBLE], PEER, 1)
        request.Wait(status)
        answers += [told(status, two), seen(target)]
    return answers


def empty() -> Any:
    """Types without bytes, objects without number, buffers without address."""
    status, answers, target = MPI.Status(), [], zeros()
    none = MPI.DOUBLE.Create_vector(0, 3, 5).Commit()
    blank = MPI.Datatype.Create_struct([0, 0], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
    column = columns()
    for one in (none, blank, none.Create_resized(0, 16).Commit()):
        request = COMM.Irecv([target, 4, one], PEER, 1)
        COMM.Send([matrix(), 7, one], PEER, 1)
        request.Wait(status)
        answers += [told(status, one), seen(target), status.Get_elements(MPI.DOUBLE)]
    COMM.Sendrecv([None, 0, column], PEER, 2, [None, 0, column], PEER, 2, status)
    return [*answers, told(status, column), column.Pack_size(0, COMM)]


def absolute() -> Any:
    """MPI_BOTTOM with addresses of several arrays."""
    here, there, status = [matrix(1), matrix(2)], [zeros(), zeros()], MPI.Status()

    def type_of(arrays: list[np.ndarray]) -> MPI.Datatype:
        places = [MPI.Get_address(one) for one in arrays]
        return MPI.Datatype.Create_struct([1, 1], places, [columns(2), columns(5)]).Commit()

    request = COMM.Irecv([MPI.BOTTOM, 1, type_of(there)], PEER, 1)
    COMM.Send([MPI.BOTTOM, 1, type_of(here)], PEER, 1)
    request.Wait(status)
    return [told(status, type_of(there)), [seen(one) for one in there]]


def order() -> Any:
    """Messages that are packed and ones that are not, of one tag, received by wildcards in their order; a type freed at once."""
    column, answers, status = columns(), [], MPI.Status()
    sends = []
    for turn in range(6):
        kind = columns(1 + turn % 3) if turn % 2 else MPI.DOUBLE.Create_contiguous(5).Commit()
        sends.append(COMM.Isend([matrix(turn), 1, kind], PEER, 3))
        kind.Free()
    for _ in range(6):
        target = zeros()
        COMM.Recv([target, 1, column], MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        answers += [told(status, column), seen(target)]
    MPI.Request.Waitall(sends)
    return answers


def too_long() -> Any:
    """Messages longer than their receives under every completion call, beside one that fits; then the next ones."""
    column, short, answers = columns(), columns(rows=N // 2), []
    for way in ("Recv", "Wait", "Test", "Waitall", "Testall", "Waitany", "Testany", "Waitsome", "Testsome"):
        COMM.Barrier()
        first, second = zeros(), zeros()
        if way == "Recv":
            sends = [COMM.Isend([matrix(tag), 1, column], PEER, tag) for tag in (1, 2)]
            answers.append(failing(lambda one=first: COMM.Recv([one, 1, short], PEER, 1)))
            COMM.Recv([second, 1, column], PEER, 2)
        else:
            requests = [COMM.Irecv([first, 1, short], PEER, 1), COMM.Irecv([second, 1, column], PEER, 2)]
            sends = [COMM.Isend([matrix(tag), 1, column], PEER, tag) for tag in (1, 2)]
            answers.append(completed(way, requests))
        MPI.Request.Waitall(sends)
        answers.append(seen(second))
        last = zeros()
        COMM.Sendrecv([matrix(7), 1, column], PEER, 5, [last, 1, column], PEER, 5)
        answers.append(seen(last))
        first[...] = 0  # nothing of the failed ones may come to it when the library uses their handles again
        MPI.Request.Waitall([COMM.Irecv([np.zeros(600), MPI.DOUBLE], PEER, 6 + i) for i in range(4)] +
                            [COMM.Isend([np.zeros(600), MPI.DOUBLE], PEER, 6 + i) for i in range(4)])  # fmt: skip
        answers.append(seen(first))
    return answers


def completed(way: str, requests: list[MPI.Request]) -> Any:
    """Return what became of two requests, the first of which fails."""
    errors: set[Any] = set()
    if way in ("Wait", "Test"):
        for one in requests:
            done = failing(getattr(one, way))
            while done is False:
                done = failing(one.Test)
            errors.add(str(done))
        return sorted(errors)
    statuses = [MPI.Status() for _ in requests]
    for _ in range(10_000_000):
        if all(one == MPI.REQUEST_NULL for one in requests):
            return sorted(errors)
        try:
            call = getattr(MPI.Request, way)
            call(requests, statuses[0] if way.endswith("any") else statuses)
        except MPI.Exception as error:
            errors.add(error.Get_error_class())
    return "never done"


def again_after_error() -> Any:
    """A persistent receive whose message was too long, one that was cancelled, started again."""
    column, short, answers, target, status = columns(), columns(rows=N // 2), [], zeros(), MPI.Status()
    request = COMM.Recv_init([target, 1, short], PEER, 1)
    for turn, kind in enumerate((short, column, short, short)):
        request.Start()
        sent = COMM.Isend([matrix(turn), 1, kind], PEER, 1)
        answers.append(failing(lambda: request.Wait(status)))
        sent.Wait()
        if kind is short:
            answers += [told(status, short), seen(target)]
        others = [COMM.Irecv([zeros(), 1, short], PEER, 50 + i) for i in range(3)]  # they must not get a buffer that is still in use
        MPI.Request.Waitall([*others, *(COMM.Isend([matrix(90), 1, short], PEER, 50 + i) for i in range(3))])
    COMM.Barrier()
    request.Start()
    request.Cancel()
    request.Wait(status)
    answers += [status.Is_cancelled(), seen(target)]
    COMM.Barrier()
    request.Start()
    COMM.Send([matrix(8), 1, short], PEER, 1)
    request.Wait(status)
    answers += [told(status, short), seen(target)]
    request.Free()
    return answers


def looked_at() -> Any:
    """MPI_Request_get_status before the end, and its forms for many: the bytes are there when it says so."""
    column, answers, status = columns(), [], MPI.Status()
    for way in ("one", "Get_status_all", "Get_status_any", "Get_status_some"):
        targets = [zeros(), zeros()]
        requests = [COMM.Irecv([one, 1, column], PEER, tag) for tag, one in enumerate(targets)]
        MPI.Request.Waitall([COMM.Isend([matrix(tag), 1, column], PEER, tag) for tag in (0, 1)])
        COMM.Barrier()
        if way == "one" or not FOR_MANY:
            for request in requests:
                while not request.Get_status(status):
                    pass
                answers.append(told(status, column))
        else:
            call = getattr(MPI.Request, way)
            done = call(requests)
            while done is False or done == [] or (way == "Get_status_some" and len(done) < 2) or (way == "Get_status_any" and not done[1]):
                done = call(requests)
            if way == "Get_status_any":
                MPI.Request.Get_status_all(requests)
        answers.append([seen(one) for one in targets])  # before any request is completed
        for request in requests:
            request.Wait(status)
            answers.append(told(status, column))
    return answers


def freed() -> Any:
    """Requests and types freed while their messages are on their way."""
    column, target, status = columns(), zeros(), MPI.Status()
    source = matrix()
    request = COMM.Isend([source, 1, column], PEER, 1)
    request.Free()
    other = columns()
    received = COMM.Irecv([target, 1, other], PEER, 1)
    other.Free()
    column.Free()
    received.Wait(status)
    COMM.Barrier()
    persistent = COMM.Send_init([source, 1, columns()], PEER, 2)
    persistent.Start()
    persistent.Free()
    more = zeros()
    COMM.Recv([more, 1, columns()], PEER, 2)
    return [told(status, columns()), seen(target), seen(more)]


def between() -> Any:
    """An intercommunicator, a communicator of one, a duplicate."""
    column, status, answers = columns(), MPI.Status(), []
    inter = MPI.COMM_SELF.Create_intercomm(0, MPI.COMM_WORLD, PEER, 5)
    target = zeros()
    inter.Sendrecv([matrix(), 1, column], 0, 1, [target, 1, column], 0, 1, status)
    answers += [told(status, column), seen(target)]
    inter.Free()
    target = zeros()
    MPI.COMM_SELF.Sendrecv([matrix(3), 1, column], 0, 1, [target, 1, column], 0, 1, status)
    return [*answers, told(status, column), seen(target)]


def refusals() -> Any:
    """Errors of the caller's: they are the library's own."""
    column, target = columns(), zeros()
    answers = [failing(lambda: COMM.Send([matrix(), 1, column], 17, 1)), failing(lambda: COMM.Recv([target, 1, column], -77, 1))]
    request = COMM.Irecv([target, 1, column], PEER, 3)
    COMM.Send([matrix(), 1, column], PEER, 3)
    request.Wait()
    return [*answers, request == MPI.REQUEST_NULL, seen(target)]


FOR_MANY = hasattr(MPI.Request, "Get_status_all") and MPI.Get_version() >= (4, 1)
CASES = (
    probes, matched_too_long, modes, nobody, inactive, cut_short, empty, absolute, order, too_long, again_after_error, looked_at, freed, between,
    refusals,
)  # fmt: skip


def main() -> int:
    asked = sys.argv[1:]
    answers = {}
    for case in CASES:
        if asked and case.__name__ not in asked:
            continue
        if RANK == 0 and os.environ.get("LOUD"):
            print(case.__name__, flush=True)
        answers[case.__name__] = COMM.gather(case())
        COMM.Barrier()
    if RANK == 0:
        served = {kind: count["served"] for kind, count in warpwright.mpi.counts().items()}
        print(json.dumps({"answers": answers, "served": served}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
