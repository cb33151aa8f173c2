"""The arrays of one kernel's launches on the device: made, renewed, compared bit by bit, and guarded, all by kernels there.

Only counters come back to the host, three numbers for a comparison. A set of arrays has one copy of what is only read, and two of what is written:
the original's and a candidate's. Behind each array stands a guard that no launch may write; what a launch wrote there is counted, and restored.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any, NamedTuple

from warpwright.domains.sass.harness import KINDS, Buffer, Launch
from warpwright.targets.cubin.driver import Driver, packed

GUARD = 4096
"""Bytes after every array, which no launch may write."""

GUARD_WORD, POISON = 0x5A5A5A5A, 0x7FC1DEAD

COUNTERS = 3
"""Of 8 bytes, which the kernels of device.cu add to."""

SHAPE = tuple(ctypes.c_uint(value) for value in (1024, 1, 1, 256, 1, 1, 0))
"""How the kernels of device.cu are launched."""


class Counted(NamedTuple):
    """What the device counted."""

    differ: int
    """Words of outputs that differ."""
    digest: int
    """Of what launches only read."""
    broken: int
    """Words of guards that were written."""


class Arrays:
    """Some sets of arrays for the launches of a kernel."""

    def __init__(self, driver: Driver, launch: Launch, helpers: Path, sets: int) -> None:
        self.driver, self.launch = driver, launch
        module = driver.module(helpers.read_bytes())
        self.fill, self.compare, self.digest, self.guards = (driver.function(module, name) for name in ("fill", "compare", "digest", "guards"))
        self.counters = driver.allocate(8 * COUNTERS)
        self.guarded: list[int] = []
        """The addresses of all guards."""
        self.sets = [self._allocate_all() for _ in range(sets)]
        """For each array of a set the addresses that the original and the candidate get: one for both where it is only read."""
        self.looking = self._guards()
        """The arguments of the kernel that looks at guards."""

    def _allocate_all(self) -> list[tuple[int, int]]:
        pairs = []
        for buffer in self.launch.buffers:
            mine = self._allocate(buffer)
            pairs.append((mine, mine if buffer.role == "given" else self._allocate(buffer)))
        return pairs

    def _allocate(self, buffer: Buffer) -> int:
        size = padded(buffer.bytes)
        address = self.driver.allocate(size + GUARD)
        self.driver.set_words(address + size, GUARD_WORD, GUARD // 4)
        self.guarded.append(address + size)
        return address

    def _guards(self) -> Any:
        where = self.driver.allocate(8 * max(1, len(self.guarded)))
        for place, address in enumerate(self.guarded):
            for half in (0, 1):
                self.driver.set_words(where + 8 * place + 4 * half, address >> 32 * half & 0xFFFFFFFF, 1)
        return packed([(8, where), (8, len(self.guarded)), (4, GUARD // 4), (4, GUARD_WORD), (8, self.counters + 16)])

    def start(self, function: ctypes.c_void_p, arguments: Any) -> None:
        """Launch a kernel of device.cu."""
        self.driver.call("cuLaunchKernel", function, *SHAPE, None, arguments, None)

    def inputs(self, number: int, seed: int) -> None:
        """Make new values in a set, and poison what only the kernel writes."""
        for place, (buffer, addresses) in enumerate(zip(self.launch.buffers, self.sets[number], strict=True)):
            for address in dict.fromkeys(addresses):
                self._renew(address, buffer, seed, place)

    def renew(self, number: int, seed: int) -> None:
        """Poison the candidate's outputs again, and restore what it updates."""
        for place, (buffer, (_, theirs)) in enumerate(zip(self.launch.buffers, self.sets[number], strict=True)):
            if buffer.role != "given":
                self._renew(theirs, buffer, seed, place)

    def _renew(self, address: int, buffer: Buffer, seed: int, place: int) -> None:
        if buffer.role == "output":
            self.driver.set_words(address, POISON, padded(buffer.bytes) // 4)
            return
        drawn = (seed * 7919 + place * 104729) & 0x7FFFFFFF
        scale, offset = float(buffer.scale), float(buffer.offset)
        self.start(self.fill, packed([(8, address), (8, buffer.count), (4, drawn), (4, scale), (4, offset), (4, KINDS.index(buffer.kind))]))

    def comparisons(self, number: int) -> list[Any]:
        """Return the arguments of `compare` for what a set's launches write."""
        written = [(b, pair) for b, pair in zip(self.launch.buffers, self.sets[number], strict=True) if b.role != "given"]
        return [packed([(8, mine), (8, theirs), (8, padded(buffer.bytes) // 4), (8, self.counters)]) for buffer, (mine, theirs) in written]

    def digests(self, number: int) -> None:
        """Add a digest of what a set's launches only read to the second counter."""
        for buffer, (address, _) in zip(self.launch.buffers, self.sets[number], strict=True):
            if buffer.role == "given":
                self.start(self.digest, packed([(8, address), (8, padded(buffer.bytes) // 4), (8, self.counters + 8)]))

    def clear(self) -> None:
        """Begin to count."""
        self.driver.set_words(self.counters, 0, 2 * COUNTERS)

    def counted(self) -> Counted:
        """Look at the guards of all sets, restoring what was written there; wait for the device; return what was counted."""
        self.start(self.guards, self.looking)
        self.driver.wait()
        return Counted(*struct.unpack("<3Q", self.driver.read(self.counters, 8 * COUNTERS)))


def padded(size: int) -> int:
    """Return the bytes that an array of so many takes on the device."""
    return -(-size // 256) * 256
