"""Run by mpiexec on four processes: all-to-all and neighbour collectives of random datatypes, against the same exchange of plain bytes.

Prints one JSON line on rank 0: the number of calls, the first that were wrong, what was served. FAKE_CUDA puts half of the buffers on a fake GPU.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

import numpy as np
from fakegpu import FakeGpu

FAKE = FakeGpu(os.environ["FAKE_CUDA"]) if "FAKE_CUDA" in os.environ else None
if FAKE is not None:
    os.environ["WARPWRIGHT_NVRTC"] = os.environ["FAKE_CUDA"]

import warpwright.mpi  # noqa: E402

# isort: split
import specs  # noqa: E402  mpi4py comes after warpwright.mpi
from mpi4py import MPI  # noqa: E402

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()


class Kind:
    """A random type whose objects do not overlap: its bytes in order, its extent, and the distance at which blocks of it lie apart."""

    def __init__(self, rng: random.Random, most: int) -> None:
        """Draw one of 100 bytes or more, `most` objects of which may follow one another."""
        while True:
            spec = specs.draw_spec(rng.randint, rng.randint(1, 2), wild=False)
            try:
                self.type = specs.build(spec).Commit()
            except MPI.Exception:
                continue
            runs, self.extent = specs.expand(spec), self.type.Get_extent()[1]
            one = np.concatenate([np.arange(at, at + size) for at, size in runs]) if runs else np.empty(0, np.int64)
            whole = np.concatenate([one + i * self.extent for i in range(most)]) if self.extent > 0 else np.empty(0, np.int64)
            if len(one) > 60 and len(np.unique(whole)) == len(whole) and len(warpwright.mpi.layout(self.type, 2).runs()[0]) > 1:
                break
            self.type.Free()
        self.one, self.low = one, min(0, int(one.min()))
        self.apart = -(-(int(whole.max()) + 1 - self.low) // self.extent) * self.extent

    def bytes_of(self, count: int, at: int) -> np.ndarray:
        """Return the places of the bytes of `count` objects at `at`, in order, counted from the buffer's start."""
        return np.concatenate([self.one + at + i * self.extent for i in range(count)] or [np.empty(0, np.int64)]) - self.low


class Memory:
    """A buffer on the host or on a fake GPU."""

    def __init__(self, content: np.ndarray, gpu: bool) -> None:
        """Hold a copy of the bytes."""
        self.gpu, self.held = gpu and FAKE is not None, content.copy()
        self.address = FAKE.allocate(len(content), RANK % 2) if self.gpu else self.held.ctypes.data
        if self.gpu:
            FAKE.write(self.address, content)

    @property
    def now(self) -> np.ndarray:
        """The bytes as they are."""
        return FAKE.read(self.address, len(self.held)) if self.gpu else self.held

    def buffer(self, low: int) -> Any:
        """What mpi4py takes; places in it begin at -low."""
        return MPI.buffer.fromaddress(self.address - low, 1 << 40)


def sides(rng: random.Random, shape: str, kind: Kind, counts: list[int]) -> tuple[list[Any], list[np.ndarray], list[Any]]:
    """Return the end of a message specification, the places of each block's bytes, and types to be freed."""
    step = kind.extent * counts[0] if shape == "uniform" and counts else kind.apart
    where = [kind.bytes_of(count, i * step) for i, count in enumerate(counts)]
    if shape == "uniform":
        return [counts[0] if counts else 0, kind.type], where, []
    if shape == "varying":
        return [(counts, [i * step // kind.extent for i in range(len(counts))]), kind.type], where, []
    copies = [kind.type.Dup() for _ in counts]
    return [counts, [i * step for i in range(len(counts))], copies], where, copies


def exchange(rng: random.Random, comm: Any, shape: str, wait: bool, out: list[int], back: list[int], kind: Kind, seed: int) -> bool:
    """Exchange blocks, and the same as bytes; return whether every byte is where it belongs."""
    neighbour = comm is not WORLD
    name = ("" if wait else "I") + ("neighbor_alltoall" if neighbour else "alltoall") + {"uniform": "", "varying": "v", "typed": "w"}[shape]
    size = (max(len(out), len(back)) + 1) * kind.apart + 64
    source = Memory(np.random.default_rng(seed * 100 + RANK).integers(0, 256, size, dtype=np.uint8), rng.random() < 0.5)
    target = Memory(np.full(size, 9, np.uint8), rng.random() < 0.5)
    send, places, own = sides(rng, shape, kind, out)
    receive, targets, more = sides(rng, shape, kind, back)
    request = getattr(comm, name[0].upper() + name[1:])([source.buffer(kind.low), *send], [target.buffer(kind.low), *receive])
    for copy in (*own, *more):
        copy.Free()  # in flight, where the call does not wait
    if not wait and rng.random() < 0.5:
        MPI.Request.Waitall([request])
    elif not wait:
        while not request.Test():
            pass
    stream = np.concatenate([source.now[where] for where in places] or [np.empty(0, np.uint8)])
    got = np.full(sum(map(len, targets)), 9, np.uint8)
    if wait:
        call = comm.Neighbor_alltoallv if neighbour else comm.Alltoallv
    else:  # on a periodic grid of two Open MPI pairs the neighbours of a call that does not wait otherwise than those of one that does
        call = comm.Ineighbor_alltoallv if neighbour else comm.Ialltoallv
    done = call([stream, [len(where) for where in places], MPI.BYTE], [got, [len(where) for where in targets], MPI.BYTE])
    if done is not None:
        done.Wait()
    expected = np.full(size, 9, np.uint8)
    expected[np.concatenate(targets or [np.empty(0, np.int64)])] = got
    return bool(np.array_equal(target.now, expected))


def main() -> int:
    rounds = int(sys.argv[1])
    rng, own = random.Random(7), random.Random(RANK)  # one that all ranks share, one of each
    before, after = (RANK - 1) % SIZE, (RANK + 1) % SIZE
    ring = WORLD.Create_dist_graph_adjacent([before, after, before], [after, before, after])
    comms = [WORLD, WORLD.Create_cart([2, SIZE // 2], [False, False]), WORLD.Create_cart([2, SIZE // 2], [True, True]), ring]
    wrong: list[str] = []
    for number in range(rounds):
        comm, shape, wait = comms[number % 4 if number % 3 else 0], rng.choice(("uniform", "varying", "typed")), rng.random() < 0.5
        kind = Kind(rng, 4 * SIZE)
        if comm is WORLD:
            table = [[rng.randint(0, 4) for _ in range(SIZE)] for _ in range(SIZE)]
            out, back = table[RANK], [row[RANK] for row in table]
        else:
            out = back = [1 + number % 4] * (3 if comm is ring else 4)  # of a grid of two dimensions, absent ones too
        if shape == "uniform":
            out, back = [1 + number % 4] * len(out), [1 + number % 4] * len(back)
        if not exchange(own, comm, shape, wait, out, back, kind, number):
            wrong.append(f"{number}: {shape} {'waiting' if wait else 'not waiting'} on {comms.index(comm)}")
        kind.type.Free()
    everything = WORLD.gather(wrong)
    if RANK == 0:
        launches = FAKE.driver.fake_launches() if FAKE is not None else 0
        print(json.dumps({"calls": rounds, "wrong": everything, "counts": warpwright.mpi.counts(), "launches": launches}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
