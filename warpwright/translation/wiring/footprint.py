"""What the kernels of an item touch, recovered by running them with recording pointers: all kernels in one library, in one process.

The result is the smallest grid along one axis that covers the wanted elements of a buffer, with the largest index of every parameter under it.
A kernel that takes too long to run whole is sampled: the number of blocks then follows from what one block stores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from warpwright import native
from warpwright.errors import WarpwrightError, WorkerError
from warpwright.translation.errors import one_line
from warpwright.translation.items import Buffer
from warpwright.translation.judge.program import Program
from warpwright.translation.wiring import grids
from warpwright.translation.wiring.grids import Coverage
from warpwright.translation.wiring.kernels import Kernel
from warpwright.translation.wiring.probe import COMMON, CUDA, PROBE_SECONDS, bad_of, call_of, recording, recording_pointers

FLAGS = ("-O2", "-std=gnu++17", "-shared", "-fPIC", "-w", "-fpermissive")
WHOLE_SECONDS = 4.0
"""Limit for running a kernel whole; one that takes longer is sampled."""

SAMPLES = 48
MOST_BLOCKS = 1 << 20
IDLE_BLOCKS = 512
"""After so many blocks in a row that touch no new element of the target, the remaining blocks are assumed to touch none."""


class Footprints:
    """Grids of the kernels of one item, with what they cover. A context manager."""

    def __init__(self, kernels: Sequence[Kernel], capacity: int) -> None:
        self.kernels, self.capacity = tuple(kernels), capacity
        self.known: dict[tuple[int, str, int], list[Coverage] | str] = {}
        self.covers: dict[tuple[int, str], int] = {}
        """(kernel, parameter) -> elements that the last run touched: the most that any grid covers, where none covered the wanted size."""
        self.program: Program | None = None
        self.results = 4 + max(len(kernel.parameters) for kernel in kernels)
        self.library = native.build(_text(self.kernels, capacity), flags=FLAGS)

    def __enter__(self) -> Footprints:
        return self

    def __exit__(self, *_: object) -> None:
        if self.program is not None:
            self.program.close()

    def launches(self, number: int, target: str, size: int) -> list[Coverage] | str:
        """Return the grids under which a kernel touches exactly the first `size` elements of a parameter, or why there is none."""
        key = (number, target, size)
        if key not in self.known:
            kernel = self.kernels[number]
            if re.search(r"(block|thread)Idx\.[yz]", kernel.text):
                probed = (kernel.text, kernel.name, kernel.parameters, kernel.block, target, size, self.capacity)
                self.known[key] = grids.launches_along_axes(*probed)
            else:
                coverage = self._one_axis(number, target, size)
                self.known[key] = coverage if isinstance(coverage, str) else [coverage]
        return self.known[key]

    def _one_axis(self, number: int, target: str, size: int) -> Coverage | str:
        kernel = self.kernels[number]
        try:
            whole = self._run(number, target, size, 0, MOST_BLOCKS, 1, WHOLE_SECONDS)
            blocks, count = whole[0], whole[1]
            if count != size and whole[3]:
                whole, count, blocks = self._sampled(number, target, size)
        except WarpwrightError as error:
            return f"no grid for {kernel.name}: {one_line(error)}"
        self.covers[number, target] = count
        if count != size or whole[2]:
            far = ", far outside a buffer too" if whole[2] else ""
            return f"no grid for {kernel.name}: no grid covers the {size} elements of {target}: {count} covered{far}"
        return Coverage((blocks, 1, 1), (kernel.block, 1, 1), {name: whole[4 + at] for at, (name, _) in enumerate(kernel.parameters)})

    def _sampled(self, number: int, target: str, size: int) -> tuple[list[int], int, int]:
        """Return the results of running a sample of the blocks, the elements of the target that the grid covers, and its number of blocks.

        Each block is assumed to store as many elements as the one before it until one stores fewer, as under a guard; bisection finds that block.
        """

        def share(block: int) -> int:
            return self._run(number, target, size, block, block + 1, 1, PROBE_SECONDS)[1]

        total = blocks = 0
        shares: list[tuple[int, int]] = []
        while total < size and (each := share(blocks)):
            end = blocks + -(-(size - total) // each)  # the rest is covered by here if all blocks store as much
            low, high = blocks, end - 1
            while low < high:  # the last block that stores as much
                middle = (low + high + 1) // 2
                low, high = (middle, high) if share(middle) == each else (low, middle - 1)
            shares.append((low + 1 - blocks, each))
            total, blocks = total + (low + 1 - blocks) * each, low + 1
        step = max(1, blocks // SAMPLES)
        some = self._run(number, target, size, 0, max(1, blocks), step, PROBE_SECONDS)
        last = self._run(number, target, size, max(0, blocks - 1), max(1, blocks), 1, PROBE_SECONDS)
        each_of = [each for count, each in shares for _ in range(count)]
        disjoint = some[1] == sum(each_of[::step])  # counts of single blocks do not show whether blocks store to the same elements
        joined = [*some[:2], some[2] | last[2], 0, *(max(a, b) for a, b in zip(some[4:], last[4:], strict=True))]
        return joined, total if disjoint else min(total, size - 1), blocks

    def _run(self, number: int, target: str, size: int, first: int, end: int, step: int, seconds: float) -> list[int]:
        """Return blocks run, elements of the target touched, whether an access was far outside, whether time ran out, and each largest index + 1."""
        if self.program is None:
            buffers = [Buffer("request", "int64", 8, "input"), Buffer("results", "int64", self.results, "output")]
            self.program = Program(self.library, "probe", buffers)
        place = [name for name, _ in self.kernels[number].parameters].index(target)
        request = [number, place, size, first, end, step, int(seconds * 1e6), self.kernels[number].block]
        self.program.fill({"request": np.array(request, np.int64)})
        try:
            self.program.call(timeout=PROBE_SECONDS)
        except WorkerError:
            self.program.close()
            self.program = None
            raise
        return [int(value) for value in self.program.outputs()["results"]]


def _text(kernels: Sequence[Kernel], capacity: int) -> str:
    lines = ["#include <ctime>", COMMON, CUDA]
    lines += [recording(kernel.text.replace('extern "C"', "static"), kernel.name, kernel.parameters) for kernel in kernels]
    lines += [
        "static double now_() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }",
        'extern "C" void probe(long* request_, long* results_) {',
        "  blockDim = {(unsigned)request_[7], 1, 1}; const double end_ = now_() + 1e-6 * request_[6];",
    ]
    for number, kernel in enumerate(kernels):
        lines.append(f"  if (request_[0] == {number}) {{")
        lines += recording_pointers(kernel.parameters, capacity, {})
        lines += [f"    if (request_[1] == {at}) {name}.wanted = request_[2];" for at, (name, _) in enumerate(kernel.parameters)]
        count = " + ".join(f"(request_[1] == {at}) * {name}.count" for at, (name, _) in enumerate(kernel.parameters))
        lines += [
            "    long blocks_ = 0, idle_ = 0, count_ = 0; bool late_ = false; for (long b_ = request_[3]; b_ < request_[4]; b_ += request_[5]) {",
            "      blockIdx = {(unsigned)b_, 0, 0}; ++blocks_;",
            "      for (unsigned t_ = 0; t_ < (unsigned)request_[7]; ++t_)",
            f"      {{ threadIdx = {{t_, 0, 0}}; {call_of(kernel.name, kernel.parameters)}; }}",
            f"      const long before_ = count_; count_ = {count}; idle_ = count_ == before_ ? idle_ + 1 : 0;",
            f"      late_ = now_() > end_; if (count_ >= request_[2] || {bad_of(kernel.parameters)} || late_ || idle_ > {IDLE_BLOCKS}) break;",
            "    }",
            f"    results_[0] = blocks_; results_[1] = count_; results_[2] = {bad_of(kernel.parameters)}; results_[3] = late_;",
        ]
        lines += [f"    results_[{4 + at}] = {name}.top + 1; free({name}.data); free({name}.seen);" for at, (name, _) in enumerate(kernel.parameters)]
        lines.append("  }")
    return "\n".join([*lines, "}", ""])
