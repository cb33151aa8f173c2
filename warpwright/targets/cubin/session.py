"""One kernel on the device, as the child process has it: its launches compared bit by bit with the original's, and timed in pairs with them.

Times are the device's own: CUDA events around enough launches to last 100 us, original and candidate as ABBA, on two sets of inputs in turn.
"""

from __future__ import annotations

import ctypes
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.harness import Argument, Buffer, Launch, load
from warpwright.targets.cubin import racing
from warpwright.targets.cubin.arrays import Arrays
from warpwright.targets.cubin.driver import Driver, DriverFailed, packed

LEAST_US = 100.0
"""Launches between two events last at least this long: an event's clock ticks in half microseconds."""

MOST_LAUNCHES = 64

FLUSHED = 256 << 20
"""Bytes: several times the second-level cache of any GPU so far."""

FEW = 4
"""So many pairs are made on one set of inputs."""

SPREAD_PAIRS = 24
"""Pairs of the original with itself, whose spread says what a pair is worth."""

Times = tuple[list[float], list[float]]
"""Microseconds of a launch of the original and of the candidate, pair by pair."""


class Session:
    """One kernel with its arrays on the device: `sets` sets of inputs, outputs of the original and of a candidate."""

    arrays: Arrays
    """From `begin` on."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.driver = driver = Driver(job["driver"], job["device"])
        self.job = job
        self.launch: Launch = load(job["harness"], job["function"])
        if job.get("kernel", "") not in ("", self.launch.kernel):
            raise ValueError(f"expected a harness that launches {job['kernel']}, saw one for {self.launch.kernel}")
        original = Path(job["original"]).read_bytes()
        self.sizes = [parameter.size for parameter in Cubin(original).parameters(self.launch.kernel)]
        self._check_arguments()
        self.original = driver.function(driver.module(original), self.launch.kernel, self.launch.shared)
        self.held: dict[int, tuple[int, int]] = {}
        """Set -> the seed of its inputs and their digest, while the original's outputs on them are still there."""
        self.events = [driver.event() for _ in range(2 * 2 * 512 + 1)]
        self.shape = [ctypes.c_uint(value) for value in (*self.launch.grid, *self.launch.block, self.launch.shared)]
        self.start = driver.library.cuLaunchKernel
        self.as_graphs = True
        """Several launches are one graph; False where the driver cannot make one."""
        self.flushed = 0
        """Where the bytes are that are written to flush the caches, once they are asked for."""
        self.graphs: dict[int, ctypes.c_void_p] = {}
        """Set -> the graph of the original's launches between two events."""
        self.spread = 0.0
        """Of one pair of the original with itself, as a log-ratio."""

    @property
    def sets(self) -> list[list[tuple[int, int]]]:
        """The addresses of the arrays of each set."""
        return self.arrays.sets

    def _check_arguments(self) -> None:
        arguments = self.launch.arguments
        if len(arguments) > len(self.sizes):
            raise ValueError(f"expected at most {len(self.sizes)} arguments for {self.launch.kernel}, saw {len(arguments)} in the harness")
        for place, (size, argument) in enumerate(zip(self.sizes, arguments, strict=False)):
            if isinstance(argument, Buffer) and size != 8:
                raise ValueError(f"expected argument {place} to be {size} bytes, saw an array in the harness")

    # --- launches --------------------------------------------------------------------------------------------------------------------

    def arguments(self, number: int, which: int) -> Any:
        """Return the launch's arguments on a set; `which`: 0 the original's outputs, 1 the candidate's."""
        addresses = iter(self.sets[number])
        values: list[tuple[int, int | float]] = []
        for size, argument in zip(self.sizes, (*self.launch.arguments, *[0] * len(self.sizes)), strict=False):
            values.append((size, _value(argument, size, next(addresses)[which] if isinstance(argument, Buffer) else 0)))
        return packed(values)

    def run(self, function: ctypes.c_void_p, arguments: Any, stream: ctypes.c_void_p | None = None) -> None:
        """Launch the kernel once."""
        code = self.start(function, *self.shape, stream, arguments, None)  # kept short: the device must not wait for the host
        if code:
            raise DriverFailed(code, "cuLaunchKernel")

    def differing(self, candidate: ctypes.c_void_p, number: int, seed: int, launches: int = 1) -> int:
        """Return how many words the candidate writes otherwise than the original on the inputs of a seed, over some launches.

        Guards and inputs count too. Inputs that a set holds already are not made again, nor is the original run on them again.
        """
        kept = self.held.get(number, (-1, 0))
        if kept[0] != seed:
            kept = (seed, self._prepare(number, seed))
        self.held.pop(number, None)
        self.arrays.clear()
        arguments, each = self.arguments(number, 1), self.arrays.comparisons(number)
        for _ in range(launches):
            self.arrays.renew(number, seed)
            self.run(candidate, arguments)
            for compared in each:
                self.arrays.start(self.arrays.compare, compared)
        self.arrays.digests(number)
        found = self.arrays.counted()
        wrong = found.differ + (found.digest != kept[1]) + found.broken
        if wrong:
            self.held.clear()  # it may have written anywhere
        else:
            self.held[number] = kept
        return wrong

    def _prepare(self, number: int, seed: int) -> int:
        """Make inputs, run the original on them; return the digest of what it must not write."""
        self.arrays.inputs(number, seed)
        self.arrays.clear()
        self.arrays.digests(number)
        self.run(self.original, self.arguments(number, 0))
        return self.arrays.counted().digest

    def _left(self) -> int:
        """Return the words of guards that the timed launches wrote."""
        self.arrays.clear()
        broken = self.arrays.counted().broken
        if broken:
            self.held.clear()
        return broken

    # --- time ------------------------------------------------------------------------------------------------------------------------

    def pairs(self, candidate: ctypes.c_void_p, rounds: int, inner: int, first: int = 0) -> Times:
        """Return the microseconds of a launch of the original and of the candidate, `rounds` pairs ABBA each, on each set of inputs in turn.

        Few pairs are all made on one set, the `first`: a change of sets costs launches that are not timed.

        A set is used for many pairs on end, after launches that are not timed: whoever comes first after a change finds the caches cold.
        """
        times: tuple[list[float], list[float]] = ([], [])
        share = rounds if rounds <= FEW else -(-rounds // len(self.sets))
        for number in range(len(self.sets)):
            for start in range(0, min(share, rounds - number * share), 256):
                count = min(256, share - start, rounds - number * share - start)
                mine, theirs = self._timed(candidate, (first + number) % len(self.sets), count, inner)
                times[0].extend(mine)
                times[1].extend(theirs)
        return times

    def _timed(self, candidate: ctypes.c_void_p, number: int, count: int, inner: int) -> Times:
        with self._started(candidate, number, inner) as start:
            return self._series(start, count, inner)

    @contextmanager
    def _started(self, candidate: ctypes.c_void_p, number: int, inner: int) -> Iterator[Callable[[int], None]]:
        """Give what starts launches of either program on a set, after some that are not timed."""
        start, done = self._together((self.original, candidate), number, self.arguments(number, 1), inner)
        for which in (0, 1, 0) if inner > 1 else (0, 1):
            start(which)
        yield start
        done()  # an error of the driver ends the process

    def _series(self, start: Callable[[int], None], count: int, inner: int) -> Times:
        """Return the microseconds of a launch of the original and of the candidate, in `count` pairs ABBA."""
        driver, events, order = self.driver, self.events, (0, 1, 1, 0)
        driver.call("cuEventRecord", events[0], None)
        for step in range(4 * count):
            start(order[step % 4])
            driver.call("cuEventRecord", events[step + 1], None)
        driver.wait()
        each = [driver.milliseconds(events[step], events[step + 1]) * 1e3 / inner for step in range(4 * count)]
        fours = [each[4 * pair : 4 * pair + 4] for pair in range(count)]
        return [(first + fourth) / 2 for first, _, _, fourth in fours], [(second + third) / 2 for _, second, third, _ in fours]

    def _cold(self, candidate: ctypes.c_void_p, number: int, count: int) -> Times:
        """Return the microseconds of single launches of the original and of the candidate, in pairs ABBA, each with cold caches."""
        driver, events, functions, arguments = self.driver, self.events, (self.original, candidate), self.arguments(number, 1)
        if not self.flushed:
            self.flushed = driver.allocate(FLUSHED)
        times: tuple[list[float], list[float]] = ([], [])
        for which in (0, 1, 1, 0) * count:
            driver.set_words(self.flushed, 0, FLUSHED // 4)
            driver.call("cuEventRecord", events[0], None)
            self.run(functions[which], arguments)
            driver.call("cuEventRecord", events[1], None)
            driver.wait()
            times[which].append(driver.milliseconds(events[0], events[1]) * 1e3)
        return times

    def _together(
        self, functions: tuple[ctypes.c_void_p, ctypes.c_void_p], number: int, arguments: Any, inner: int
    ) -> tuple[Callable[[int], None], Callable[[], None]]:
        """Return what starts the launches of one of two programs that stand between two events, and what cleans up behind.

        Several launches are one graph: a host that is busy with other searches does not keep the device waiting between them.
        """
        driver = self.driver
        if inner == 1 or not self.as_graphs:

            def one_by_one(which: int) -> None:
                for _ in range(inner):
                    self.run(functions[which], arguments)

            return one_by_one, lambda: None

        def graph_of(function: ctypes.c_void_p) -> ctypes.c_void_p:
            def launches(stream: ctypes.c_void_p) -> None:
                for _ in range(inner):
                    self.run(function, arguments, stream)

            return driver.graph(launches)

        if number not in self.graphs:
            self.graphs[number] = graph_of(functions[0])
        graphs = (self.graphs[number], graph_of(functions[1]))
        return lambda which: driver.call("cuGraphLaunch", graphs[which], None), lambda: driver.call("cuGraphExecDestroy", graphs[1])

    def _use(self, original: ctypes.c_void_p) -> None:
        """Let another load of the original be what candidates are timed beside."""
        for graph in self.graphs.values():
            self.driver.call("cuGraphExecDestroy", graph)
        self.graphs.clear()
        self.original = original

    def begin(self) -> dict[str, Any]:
        """Run the original: is it the same each time, how long does it take, and how far are pairs of it with itself apart?"""
        self.arrays = Arrays(self.driver, self.launch, Path(self.job["helpers"]), self.job["sets"])
        for number in range(len(self.sets)):
            self.arrays.inputs(number, number + 1)
        differ = [self.differing(self.original, number, 100 + number) for number in range(len(self.sets))]
        alone, _ = self.pairs(self.original, 3, 1)
        us = statistics.median(alone)
        self.inner = max(1, min(MOST_LAUNCHES, math.ceil(LEAST_US / max(us, 0.1))))
        try:
            self.pairs(self.original, 1, self.inner)
        except DriverFailed:
            self.as_graphs = False
            self.pairs(self.original, 1, self.inner)
        self.spread = racing.spread(_ratios(self.pairs(self.original, SPREAD_PAIRS, self.inner)))
        about = {"us": us, "inner": self.inner, "graphs": self.as_graphs, "spread": self.spread, "differ": differ}
        return {**about, "device": self.driver.name, "kernel": self.launch.kernel}

    def evaluate(self, image: str, seeds: Sequence[int], rounds: Sequence[int], worth: float, fresh: Sequence[int] = ()) -> dict[str, Any]:
        """Compare a candidate with the original, then let it race: pairs of each number of rounds, as long as it may still be worth it.

        What reaches the last rounds is compared on the inputs of `fresh` before them. `left`: the words of guards that the
        timed launches wrote. `seconds` of the answer says where the time went.
        """
        clock = [time.perf_counter()]
        module = self.driver.module(Path(image).read_bytes())
        candidate = self.driver.function(module, self.launch.kernel, self.launch.shared)
        clock.append(time.perf_counter())
        differ = [self.differing(candidate, place % len(self.sets), seed) for place, seed in enumerate(seeds)]
        clock.append(time.perf_counter())
        times: Times = ([], [])
        if rounds and not any(differ):
            self._race(candidate, rounds, worth, fresh, differ, times)
        left = self._left() if times[0] and not any(differ) else 0
        clock.append(time.perf_counter())
        self.driver.call("cuModuleUnload", module)
        clock.append(time.perf_counter())
        parts = {part: end - begin for part, begin, end in zip(("load", "compare", "time", "unload"), clock, clock[1:], strict=False)}
        return {"differ": differ, "left": left, "original_us": times[0], "candidate_us": times[1], "seconds": parts}

    def _race(self, candidate: ctypes.c_void_p, rounds: Sequence[int], worth: float, fresh: Sequence[int], differ: list[int], times: Times) -> None:
        """Time all rounds but the last on the first set, on end; then the last on the others, after the comparisons of `fresh`."""
        *first, last = rounds
        if first:
            with self._started(candidate, 0, self.inner) as start:
                for count in first:
                    _extend(times, self._series(start, count, self.inner))
                    if racing.is_out(_ratios(times), worth, self.spread):
                        return
        differ += [self.differing(candidate, len(self.sets) - 1, seed) for seed in fresh]  # the first set keeps its inputs
        if not any(differ):
            _extend(times, self.pairs(candidate, last, self.inner, 1 if first else 0))

    def epochs(self, image: str, epochs: int, pairs: int, cold: int) -> dict[str, Any]:
        """Time a candidate in epochs: in each both programs are loaded anew, in turn first, for where code lies in the caches changes its time.

        Each epoch has `pairs` pairs on warm inputs, and `cold` pairs of single launches, each after FLUSHED bytes were written, so that it finds
        nothing of its own in the caches. The answer has a median for each epoch of both.
        """
        images = (Path(self.job["original"]).read_bytes(), Path(image).read_bytes())
        kept = self.original
        told: dict[str, Any] = {regime: {"original_us": [], "candidate_us": []} for regime in ("warm", "cold")}
        for epoch in range(epochs):
            modules: dict[int, ctypes.c_void_p] = {}
            for which in (0, 1) if epoch % 2 == 0 else (1, 0):
                modules[which] = self.driver.module(images[which])
            original, candidate = (self.driver.function(modules[which], self.launch.kernel, self.launch.shared) for which in (0, 1))
            self._use(original)
            if pairs:
                _extend_median(told["warm"], self.pairs(candidate, pairs, self.inner))
            if cold:
                _extend_median(told["cold"], self._cold(candidate, epoch % len(self.sets), cold))
            self._use(kept)
            for module in modules.values():
                self.driver.call("cuModuleUnload", module)
        return {**told, "left": self._left()}

    def stress(self, image: str, seeds: Sequence[int], launches: int, seconds: float) -> dict[str, Any]:
        """Compare every one of many launches with the original, on new inputs for each seed."""
        module = self.driver.module(Path(image).read_bytes())
        candidate = self.driver.function(module, self.launch.kernel, self.launch.shared)
        began, differ, launched = time.monotonic(), 0, 0
        for place, seed in enumerate(seeds):
            differ += self.differing(candidate, place % len(self.sets), seed, launches)
            launched += launches
            if time.monotonic() - began > seconds:
                break
        self.driver.call("cuModuleUnload", module)
        return {"differ": [differ], "launches": launched, "seeds": place + 1}

    def written(self, folder: str, seed: int) -> dict[str, Any]:
        """Run the original once on new inputs and write its arrays, raw, into a folder."""
        self.held.pop(0, None)
        self.arrays.inputs(0, seed)
        self.run(self.original, self.arguments(0, 0))
        self.driver.wait()
        for place, (buffer, (mine, _)) in enumerate(zip(self.launch.buffers, self.sets[0], strict=True)):
            Path(folder, f"{place}.raw").write_bytes(self.driver.read(mine, buffer.bytes))
        return {"kinds": [buffer.kind for buffer in self.launch.buffers], "roles": [buffer.role for buffer in self.launch.buffers]}


def _value(argument: Argument, size: int, address: int) -> int | float:
    if isinstance(argument, Buffer):
        return address
    return argument


def _ratios(times: Times) -> list[float]:
    return [a / b for a, b in zip(*times, strict=True)]


def _extend(times: Times, more: Times) -> None:
    for mine, new in zip(times, more, strict=True):
        mine.extend(new)


def _extend_median(told: dict[str, list[float]], times: Times) -> None:
    """Add an epoch: the original's median, and the candidate's by the median of the ratios of pairs."""
    original = statistics.median(times[0])
    told["original_us"].append(original)
    told["candidate_us"].append(original / statistics.median(_ratios(times)))
