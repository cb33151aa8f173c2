"""Run by mpiexec on two processes: random datatypes through every mode of message and every way of completion, on both sides against the expansion.

Prints one JSON line on rank 0: the number of messages and the first that were wrong. FAKE_CUDA puts every other object into a fake GPU's memory.
WITHOUT names the rank that runs without the shim, MODES the blocking ways to be taken.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from fakegpu import FakeGpu

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
if os.environ.get("WITHOUT") == str(RANK):
    os.environ["WARPWRIGHT_MPI"] = "off"
FAKE = FakeGpu(os.environ["FAKE_CUDA"]) if "FAKE_CUDA" in os.environ else None
if FAKE is not None:
    os.environ["WARPWRIGHT_NVRTC"] = os.environ["FAKE_CUDA"]

import warpwright.mpi  # noqa: E402

# isort: split
import specs  # noqa: E402  mpi4py comes after warpwright.mpi
from mpi4py import MPI  # noqa: E402

MODES = tuple(os.environ.get("MODES", "Send Ssend Sendrecv Probe").split())
COMM = MPI.COMM_WORLD
PEER = 1 - RANK


class Object:
    """`count` objects of a random type in a buffer of its own, with the bytes that they pack to."""

    def __init__(self, rng: random.Random, seed: int, gpu: bool) -> None:
        """Draw a type of at least 600 packed bytes, or of few: both ways are taken."""
        while True:
            spec = specs.draw_spec(rng.randint, rng.randint(1, 2), wild=False)
            try:
                self.type = specs.build(spec).Commit()
            except MPI.Exception:
                continue
            runs, extent = specs.expand(spec), self.type.Get_extent()[1]
            self.count = rng.choice((1, 40, 200))
            spread = [(i * extent + at, size) for i in range(self.count) for at, size in runs]
            where = np.concatenate([np.arange(at, at + size) for at, size in spread]) if spread else np.empty(0, np.int64)
            if len(where) and len(np.unique(where)) == len(where):
                break
            self.type.Free()
        self.low = int(where.min())
        self.where = where - self.low
        self.ends = np.cumsum([0, *(size for _, size in spread)])
        values = np.random.default_rng(seed).integers(0, 256, int(self.where.max()) + 1, dtype=np.uint8)
        self.place(values, gpu and FAKE is not None and len(warpwright.mpi.layout(self.type, 2).runs()[0]) > 1)  # one run is the library's

    def place(self, values: np.ndarray, gpu: bool) -> None:
        """Lay the bytes into memory of the host or of a fake GPU."""
        self.on_gpu = gpu
        self.size, self.held = len(values), values
        self.address = values.ctypes.data
        if self.on_gpu:
            self.address = FAKE.allocate(len(values), RANK % 2)
            FAKE.write(self.address, values)

    @property
    def memory(self) -> np.ndarray:
        """The bytes as they are now."""
        return FAKE.read(self.address, self.size) if self.on_gpu else self.held

    @property
    def message(self) -> list[Any]:
        """What mpi4py sends or receives."""
        return [MPI.buffer.fromaddress(self.address - self.low, 1 << 40), self.count, self.type]

    @property
    def stream(self) -> np.ndarray:
        """The bytes in order."""
        return self.memory[self.where]


def complete(rng: random.Random, requests: list[MPI.Request]) -> str:
    """Complete all requests in one of the ways there are."""
    way = rng.choice(("wait", "test", "waitall", "waitall without statuses", "testall", "waitany", "testany", "waitsome", "testsome", "get status"))
    if way == "wait":
        for request in requests:
            request.Wait(MPI.Status() if rng.random() < 0.5 else None)
    elif way == "test":
        for request in requests:
            while not request.Test():
                pass
    elif way == "get status":
        for request in requests:
            while not request.Get_status():
                pass
            request.Wait()
    elif way.startswith("waitall"):
        MPI.Request.Waitall(requests, None if "without" in way else [MPI.Status() for _ in requests])
    elif way == "testall":
        while not MPI.Request.Testall(requests):
            pass
    else:
        left = len(requests)
        while left:
            if way == "waitany":
                done = [MPI.Request.Waitany(requests, MPI.Status())]
            elif way == "testany":
                index, flag = MPI.Request.Testany(requests)
                done = [index] if flag else []
            else:
                done = list((MPI.Request.Waitsome if way == "waitsome" else MPI.Request.Testsome)(requests) or [])
            left -= len(done)
    return way


def blocking(rng: random.Random, sent: Object, received: Object, tag: int) -> str:
    """Send and receive one after the other, or in one call."""
    mode = rng.choice(MODES)
    status = MPI.Status()
    if mode == "Sendrecv":
        COMM.Sendrecv(sent.message, PEER, tag, received.message, PEER, tag, status)
    else:
        send: Callable[..., None] = COMM.Ssend if mode == "Ssend" else COMM.Send
        for turn in (0, 1):
            if turn == RANK:
                send(sent.message, PEER, tag)
            elif mode == "Probe":
                COMM.Probe(MPI.ANY_SOURCE, tag, status)
                assert status.Get_count(MPI.BYTE) in (len(received.where), MPI.UNDEFINED)
                COMM.Recv(received.message, status.Get_source(), tag)
            else:
                COMM.Recv(received.message, MPI.ANY_SOURCE, tag, status if rng.random() < 0.5 else None)
    return mode


def freed(one: Object, start: Callable[[list[Any]], MPI.Request]) -> MPI.Request:
    """Start a message of a type that is freed while it is on its way."""
    buffer, count, datatype = one.message
    copy = datatype.Dup()
    request = start([buffer, count, copy])
    copy.Free()
    return request


def nonblocking(rng: random.Random, sent: list[Object], received: list[Object], tag: int) -> str:
    """Start many of both kinds, or persistent ones twice, and complete them."""
    persistent = rng.random() < 0.4
    if not persistent:
        receives = [freed(one, lambda message, i=i: COMM.Irecv(message, PEER, tag + i)) for i, one in enumerate(received)]
        start = COMM.Issend if rng.random() < 0.3 else COMM.Isend
        sends = [freed(one, lambda message, i=i: start(message, PEER, tag + i)) for i, one in enumerate(sent)]
        return complete(rng, [*receives, *sends])
    receives = [COMM.Recv_init(one.message, PEER, tag + i) for i, one in enumerate(received)]
    sends = [COMM.Send_init(one.message, PEER, tag + i) for i, one in enumerate(sent)]
    way = ""
    for _ in range(2):
        MPI.Prequest.Startall(receives)
        for request in sends:
            request.Start()
        MPI.Request.Waitall([*receives, *sends]) if rng.random() < 0.5 else [request.Wait() for request in (*receives, *sends)]
    for request in (*receives, *sends):
        request.Free()
    return f"persistent {way}"


def short(sent: Object, received: Object, tag: int, cut: int) -> bool:
    """Receive a message that is shorter than the receiver's type; return whether exactly its bytes arrived."""
    before, stream = received.memory.copy(), sent.stream[:cut].copy()
    request = COMM.Irecv(received.message, PEER, tag)
    COMM.Send([stream, MPI.BYTE], PEER, tag)
    status = MPI.Status()
    request.Wait(status)
    other = np.empty(cut, np.uint8)
    COMM.Sendrecv([stream, MPI.BYTE], PEER, tag, [other, MPI.BYTE], PEER, tag)
    before[received.where[:cut]] = other
    return bool(np.array_equal(before, received.memory)) and status.Get_elements(MPI.BYTE) in (cut, MPI.UNDEFINED)


def main() -> int:
    rounds = int(sys.argv[1])
    rng = random.Random(5)  # both ranks draw the same
    wrong: list[str] = []
    messages = 0
    for number in range(rounds):
        several = number % 2
        mine = [Object(rng, 1000 * number + 10 * i + RANK, (number + i) % 3 == 1) for i in range(4 if several else 1)]
        target = [Target(one) for one in mine]
        if several:
            way = nonblocking(rng, mine, target, 10 * number)
        else:
            way = blocking(rng, mine[0], target[0], 10 * number)
        for i, (one, got) in enumerate(zip(mine, target, strict=True)):
            theirs = np.random.default_rng(1000 * number + 10 * i + PEER).integers(0, 256, one.size, dtype=np.uint8)
            expected = np.full(one.size, 9, np.uint8)
            expected[one.where] = theirs[one.where]
            messages += 1
            if not np.array_equal(got.memory, expected):
                wrong.append(f"{number}: {way}, {one.count} objects of {len(one.where)} bytes in all")
        cut = int(rng.choice(list(mine[0].ends)))  # whole elements: MPICH looks
        if number % 3 == 0 and not short(mine[0], target[0], 10 * number + 9, cut):
            wrong.append(f"{number}: short")
        for one in mine:
            one.type.Free()
    all_wrong = COMM.gather(wrong)
    if RANK == 0:
        launches = FAKE.driver.fake_launches() if FAKE is not None else 0
        print(json.dumps({"messages": messages, "wrong": all_wrong, "counts": warpwright.mpi.counts(), "launches": launches}))
    return bool(wrong)


class Target(Object):
    """A buffer of nines for what another object sends."""

    def __init__(self, like: Object) -> None:
        """Take everything but the memory from `like`."""
        self.type, self.count, self.low, self.where, self.ends = like.type, like.count, like.low, like.where, like.ends
        self.place(np.full(like.size, 9, np.uint8), like.on_gpu and like.size % 3 > 0)  # some arrive on the host


if __name__ == "__main__":
    sys.exit(main())
