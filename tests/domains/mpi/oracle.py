"""Run in an interpreter with mpi4py: random datatypes, packed by the shim, by the library behind it and by an independent expansion.

    python oracle.py --types 2000 --seed 0

Prints one JSON line: the number of types, what was compared, and the first disagreements.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import itertools
import json
import os
import random
import sys
from typing import Any

import numpy as np
from fakegpu import FakeGpu

import warpwright.mpi
from warpwright.domains.mpi import activate

FAKE = FakeGpu(os.environ["FAKE_CUDA"]) if "FAKE_CUDA" in os.environ else None
if FAKE is not None:
    os.environ["WARPWRIGHT_NVRTC"] = os.environ["FAKE_CUDA"]
SHIM = activate.activate()
LIBRARY = ctypes.CDLL(str(activate.library_of_mpi4py()))

import specs  # noqa: E402  it imports mpi4py: after the shim
from mpi4py import MPI  # noqa: E402

HANDLE: Any = ctypes.c_void_p if MPI._sizeof(MPI.BYTE) == 8 else ctypes.c_int
SELF = HANDLE(MPI._handleof(MPI.COMM_SELF))
OPEN_MPI = "Open MPI" in MPI.Get_library_version()
MARGIN = 64
COMPARED: collections.Counter[bool] = collections.Counter()
"""How many types were compared with the library too, and how many with the expansion alone."""


def pack(library: Any, base: int, count: int, datatype: Any, room: np.ndarray, position: int) -> tuple[int, int]:
    """Call MPI_Pack of the shim or of the library; return its code and the position after it."""
    at = ctypes.c_int(position)
    code = library.MPI_Pack(
        ctypes.c_void_p(base), count, HANDLE(MPI._handleof(datatype)), ctypes.c_void_p(room.ctypes.data), len(room), ctypes.byref(at), SELF
    )
    return code, at.value


def unpack(library: Any, packed: np.ndarray, position: int, base: int, count: int, datatype: Any) -> tuple[int, int]:
    """Call MPI_Unpack; return its code and the position after it."""
    at = ctypes.c_int(position)
    code = library.MPI_Unpack(
        ctypes.c_void_p(packed.ctypes.data), len(packed), ctypes.byref(at), ctypes.c_void_p(base), count, HANDLE(MPI._handleof(datatype)), SELF
    )
    return code, at.value


def doubtful(spec: specs.Spec, count: int, extent: int) -> bool:
    """Whether the library itself is known to pack such a type otherwise than the standard says; the expansion judges alone then.

    Open MPI packs hvector(2, 1, 8, C_DOUBLE_COMPLEX) as twice the first element; hvector(3, 1, -40, C_DOUBLE_COMPLEX), in which nothing overlaps,
    wrongly too: so types with members of 16 bytes are not compared with it.
    """
    if OPEN_MPI:
        wide = any(name in repr(spec) for name in ("C_DOUBLE_COMPLEX", "LONG_DOUBLE_INT"))
        return wide or specs.has_step_of_minus_one(spec) or (count > 1 and extent == -1)
    return specs.has_negative_extent(spec) or specs.has_empty_member(spec)


def examine(spec: specs.Spec, count: int, position: int, cut: int, seed: int) -> list[str]:
    """Return what disagrees on `count` objects of a type, packed at `position`, and received short, `cut` bytes of it."""
    rng = np.random.default_rng(seed)
    datatype = specs.build(spec).Commit()
    extent = datatype.Get_extent()[1]
    runs = [(i * extent + at, size) for i in range(count) for at, size in specs.expand(spec)]
    low, high = min([at for at, _ in runs] + [0]) - MARGIN, max([at + size for at, size in runs] + [1]) + MARGIN
    memory = rng.integers(0, 256, high - low, dtype=np.uint8)
    base = memory.ctypes.data - low
    where = np.concatenate([np.arange(at - low, at - low + size) for at, size in runs] or [np.empty(0, np.int64)]).astype(np.int64)
    stream = memory[where]
    wrong = []
    overlaps = len(np.unique(where)) < len(where)
    trusted = not doubtful(spec, count, extent)
    COMPARED[trusted] += 1
    for name, library in (("shim", SHIM), ("library", LIBRARY)) if trusted else (("shim", SHIM),):
        room = np.full(position + len(stream) + 8, 7, np.uint8)
        code, after = pack(library, base, count, datatype, room, position)
        expected = np.full(len(room), 7, np.uint8)
        expected[position : position + len(stream)] = stream
        if code or after != position + len(stream) or not np.array_equal(room, expected):
            wrong.append(f"{name}: MPI_Pack")
    fresh = rng.integers(0, 256, len(stream), dtype=np.uint8)
    for name, library in (("shim", SHIM), ("library", LIBRARY)) if trusted and not overlaps else (("shim", SHIM),):
        target, expected = memory.copy(), memory.copy()
        for byte, place in zip(fresh.tolist(), where.tolist(), strict=True):
            expected[place] = byte  # in order: where runs overlap the last one stays
        padded = np.concatenate([np.zeros(position, np.uint8), fresh])
        code, after = unpack(library, padded, position, target.ctypes.data - low, count, datatype)
        if code or after != len(padded) or not np.array_equal(target, expected):
            wrong.append(f"{name}: MPI_Unpack")
    if FAKE is not None and not left_to_the_library(datatype, extent):
        wrong += on_devices(datatype, count, position, memory, low, where, overlaps)
    wrong += partly(datatype, count, cut % (len(stream) + 1), memory, base, low, where)
    datatype.Free()
    return wrong


def partly(datatype: Any, count: int, cut: int, memory: np.ndarray, base: int, low: int, where: np.ndarray) -> list[str]:
    """Compare a short receive of `cut` bytes, and the rest that was not received, with the expansion."""
    layout = warpwright.mpi.layout(datatype, count)
    stream, wrong = memory[where], []
    if layout.bytes != len(stream):
        return ["layout: bytes"]
    offsets, lengths = layout.runs()
    spread = np.concatenate([np.arange(at, at + size) for at, size in zip(offsets, lengths, strict=True)] or [np.empty(0, np.int64)])
    if not np.array_equal(spread - low, where):
        wrong.append("layout: order of the runs")
    if len(stream) and layout.span != (int(where.min()) + low, int(where.max()) + 1 + low):
        wrong.append("layout: span")
    head, tail = np.zeros(cut, np.uint8), np.zeros(len(stream) - cut, np.uint8)
    layout.pack(base, head)
    layout.pack(base, tail, cut)
    if not np.array_equal(np.concatenate([head, tail]), stream):
        wrong.append("layout: pack in two parts")
    target, expected = np.zeros_like(memory), np.zeros_like(memory)
    layout.unpack(head, target.ctypes.data - low)
    expected[where[:cut]] = head
    if len(np.unique(where)) == len(where) and not np.array_equal(target, expected):
        wrong.append("layout: short unpack")
    return wrong


class Device:
    """Memory of the fake GPU `device` (0, 1), pinned memory (-1) or ordinary memory (None), with the given bytes in it."""

    def __init__(self, content: np.ndarray, device: int | None) -> None:
        self.device, self.content = device, content.copy()
        self.address = self.content.ctypes.data
        if device is not None and FAKE is not None:
            self.address = FAKE.allocate(len(content), max(device, 0), pinned=device < 0)
            FAKE.write(self.address, content)

    def bytes(self) -> np.ndarray:
        """Return what is in it, and free it."""
        if self.device is None or FAKE is None:
            return self.content
        result = FAKE.read(self.address, len(self.content))
        FAKE.free(self.address, pinned=self.device < 0)
        return result


def left_to_the_library(datatype: Any, extent: int) -> bool:
    """Whether a type is one run of bytes: its calls are forwarded, and these libraries know nothing of GPUs."""
    one = warpwright.mpi.layout(datatype)
    return one.bytes == 0 or (len(one.runs()[0]) == 1 and extent == one.bytes)


def on_devices(datatype: Any, count: int, position: int, memory: np.ndarray, low: int, where: np.ndarray, overlaps: bool) -> list[str]:
    """Compare MPI_Pack and MPI_Unpack between every two kinds of memory with the expansion."""
    stream, wrong, handle = memory[where], [], HANDLE(MPI._handleof(datatype))
    room = np.full(position + len(stream) + 8, 7, np.uint8)
    packed = room.copy()
    packed[position : position + len(stream)] = stream
    unpacked = np.full(len(memory), 9, np.uint8)
    unpacked[where] = stream
    for here, there in itertools.product((None, -1, 0, 1), repeat=2):
        source, target = Device(memory, here), Device(room, there)
        at = ctypes.c_int(position)
        base, end = ctypes.c_void_p(source.address - low), ctypes.c_void_p(target.address)
        code = SHIM.MPI_Pack(base, count, handle, end, len(room), ctypes.byref(at), SELF)
        if code or at.value != position + len(stream) or not np.array_equal(target.bytes(), packed) or not np.array_equal(source.bytes(), memory):
            wrong.append(f"device: MPI_Pack from {here} to {there}")
        if overlaps:
            continue
        source, target = Device(packed, there), Device(np.full(len(memory), 9, np.uint8), here)
        at = ctypes.c_int(position)
        base, end = ctypes.c_void_p(target.address - low), ctypes.c_void_p(source.address)
        code = SHIM.MPI_Unpack(end, position + len(stream), ctypes.byref(at), base, count, handle, SELF)
        if code or at.value != position + len(stream) or not np.array_equal(target.bytes(), unpacked):
            wrong.append(f"device: MPI_Unpack from {there} to {here}")
        source.bytes()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--types", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    kinds: collections.Counter[str] = collections.Counter()
    failures, refused, disagreed = [], collections.Counter[str](), collections.Counter[str]()
    for number in range(options.types):
        spec = specs.draw_spec(rng.randint, rng.randint(1, 3), wild=number % 2 == 1)
        kinds[spec[0]] += 1
        given = (rng.randint(0 if number % 8 == 1 else 1, 3), rng.choice((0, 0, 1, 8, 13)), rng.randint(0, 1000))
        try:
            specs.build(spec).Free()
        except MPI.Exception as error:  # Open MPI refuses a darray of which a process holds nothing
            refused[f"{spec[0]}: {error}"] += 1
            continue
        wrong = examine(spec, *given, number)
        disagreed.update(wrong)
        if wrong:
            failures.append({"type": repr(spec), "count, position, cut": given, "wrong": wrong})
    print(json.dumps({
        "library": MPI.Get_library_version().split(",")[0].splitlines()[0], "types": options.types,
        "compared": COMPARED[True], "expansion_alone": COMPARED[False], "kinds": kinds, "refused": refused,
        "failed": len(failures), "disagreed": disagreed, "failures": failures[:5], "counts": warpwright.mpi.counts(),
        "launches": FAKE.driver.fake_launches() if FAKE is not None else 0,
    }))  # fmt: skip
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
