"""The child process that holds the context: loads cubins, compares them bit by bit with the original, times them in pairs. One JSON line each way.

It imports no package but the harness's, so that it starts in a fraction of a second; any error of the driver ends it, and with it the context.

    python child.py JOB      JOB is a JSON file: driver, device, original, helpers, harness, sets
    {"do": "begin"}      first of all: is the original the same each time, and how long does it take?
    {"do": "evaluate", "image": path, "seeds": [..], "rounds": [2, 4, 12], "worth": 1.001, "fresh": [..]}     `fresh` before the last rounds
    {"do": "epochs", "image": path, "epochs": 12, "pairs": 25, "cold": false}     both loaded anew for each epoch; a median for each
    {"do": "stress", "image": path, "seeds": [..], "launches": 1000, "seconds": 2.0}     as many launches for each seed, seeds as time allows
    {"do": "arrays", "folder": path, "seed": 1}      the original's arrays after a launch, a file each

Times are the device's own: CUDA events around enough launches to last 100 us, original and candidate as ABBA, on two sets of inputs in turn.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import statistics
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from warpwright.domains.sass.cubin import Cubin
from warpwright.domains.sass.harness import KINDS, Argument, Buffer, Launch, load
from warpwright.targets.cubin.driver import Driver, DriverFailed, packed

GUARD = 4096
"""Bytes after every array, which no launch may write."""

GUARD_WORD, POISON = 0x5A5A5A5A, 0x7FC1DEAD

LEAST_US = 100.0
"""Launches between two events last at least this long: an event's clock ticks in half microseconds."""

MOST_LAUNCHES = 64

FLUSHED = 256 << 20
"""Bytes: several times the second-level cache of any GPU so far."""

FEW = 4
"""So many pairs are made on one set of inputs."""

CLEARED = 8
"""Counters of 8 bytes that the kernels of device.cu add to."""

HELPER_SHAPE = tuple(ctypes.c_uint(value) for value in (1024, 1, 1, 256, 1, 1, 0))


class Session:
    """One kernel with its arrays on the device: `sets` sets of inputs, outputs of the original and of a candidate."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.driver = driver = Driver(job["driver"], job["device"])
        self.job = job
        self.launch: Launch = load(job["harness"], job["function"])
        original = Path(job["original"]).read_bytes()
        self.sizes = [parameter.size for parameter in Cubin(original).parameters(self.launch.kernel)]
        self._check_arguments()
        helpers = driver.module(Path(job["helpers"]).read_bytes())
        self.fill, self.compare, self.digest = (driver.function(helpers, name) for name in ("fill", "compare", "digest"))
        self.counters = driver.allocate(8 * CLEARED)
        self.original = driver.function(driver.module(original), self.launch.kernel, self.launch.shared)
        self.sets = [self._allocate_all() for _ in range(job["sets"])]
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

    def _check_arguments(self) -> None:
        arguments = self.launch.arguments
        if len(arguments) > len(self.sizes):
            raise ValueError(f"expected at most {len(self.sizes)} arguments for {self.launch.kernel}, saw {len(arguments)} in the harness")
        for place, (size, argument) in enumerate(zip(self.sizes, arguments, strict=False)):
            if isinstance(argument, Buffer) and size != 8:
                raise ValueError(f"expected argument {place} to be {size} bytes, saw an array in the harness")

    # --- memory ----------------------------------------------------------------------------------------------------------------------

    def _allocate_all(self) -> list[tuple[int, int]]:
        """Return for each array the addresses that the original and the candidate get: one for both where it is only read."""
        pairs = []
        for buffer in self.launch.buffers:
            mine = self._allocate(buffer)
            pairs.append((mine, mine if buffer.role == "given" else self._allocate(buffer)))
        return pairs

    def _allocate(self, buffer: Buffer) -> int:
        size = _padded(buffer.bytes)
        address = self.driver.allocate(size + GUARD)
        self.driver.set_words(address + size, GUARD_WORD, GUARD // 4)
        return address

    def inputs(self, number: int, seed: int) -> None:
        """Make new values in a set, and poison what only the kernel writes."""
        for place, (buffer, addresses) in enumerate(zip(self.launch.buffers, self.sets[number], strict=True)):
            for address in dict.fromkeys(addresses):
                if buffer.role == "output":
                    self.driver.set_words(address, POISON, _padded(buffer.bytes) // 4)
                else:
                    self._fill(address, buffer, (seed * 7919 + place * 104729) & 0x7FFFFFFF)

    def _fill(self, address: int, buffer: Buffer, seed: int) -> None:
        kind = KINDS.index(buffer.kind)
        values = [(8, address), (8, buffer.count), (4, seed), (4, float(buffer.scale)), (4, float(buffer.offset)), (4, kind)]
        self._helper(self.fill, values)

    def _helper(self, function: ctypes.c_void_p, values: list[tuple[int, int | float]]) -> None:
        self._start(function, packed(values))

    def _start(self, function: ctypes.c_void_p, arguments: Any) -> None:
        self.driver.call("cuLaunchKernel", function, *HELPER_SHAPE, None, arguments, None)

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
        self.driver.set_words(self.counters, 0, 2 * CLEARED)
        written = [(b, pair) for b, pair in zip(self.launch.buffers, self.sets[number], strict=True) if b.role != "given"]
        arguments = self.arguments(number, 1)
        each = [packed([(8, mine), (8, theirs), (8, _padded(buffer.bytes) // 4), (8, self.counters)]) for buffer, (mine, theirs) in written]
        for _ in range(launches):
            self._renew(number, seed)
            self.run(candidate, arguments)
            for compared in each:
                self._start(self.compare, compared)
        self._digests(number)
        differ, after = self._counted()
        broken = differ + (after != kept[1]) + self._guards_broken(number)
        if not broken:
            self.held[number] = kept
        return broken

    def _prepare(self, number: int, seed: int) -> int:
        """Make inputs, run the original on them; return the digest of what it must not write."""
        self.inputs(number, seed)
        self.driver.set_words(self.counters, 0, 2 * CLEARED)
        self._digests(number)
        self.run(self.original, self.arguments(number, 0))
        return self._counted()[1]

    def _counted(self) -> tuple[int, int]:
        """Wait for the device; return the words that differed, and the digest."""
        self.driver.wait()
        differ, digest = struct.unpack_from("<2Q", self.driver.read(self.counters, 8 * CLEARED))
        return differ, digest

    def _renew(self, number: int, seed: int) -> None:
        """Poison the candidate's outputs again, and restore what it updates."""
        for place, (buffer, (_, theirs)) in enumerate(zip(self.launch.buffers, self.sets[number], strict=True)):
            if buffer.role == "output":
                self.driver.set_words(theirs, POISON, _padded(buffer.bytes) // 4)
            elif buffer.role == "updated":
                self._fill(theirs, buffer, (seed * 7919 + place * 104729) & 0x7FFFFFFF)

    def _digests(self, number: int) -> None:
        """Add a digest of what a set's launches only read to the second counter."""
        for buffer, (address, _) in zip(self.launch.buffers, self.sets[number], strict=True):
            if buffer.role == "given":
                self._helper(self.digest, [(8, address), (8, _padded(buffer.bytes) // 4), (8, self.counters + 8)])

    def _guards_broken(self, number: int) -> int:
        broken = 0
        expected = struct.pack("<I", GUARD_WORD) * (GUARD // 4)
        for buffer, addresses in zip(self.launch.buffers, self.sets[number], strict=True):
            broken += sum(self.driver.read(address + _padded(buffer.bytes), GUARD) != expected for address in dict.fromkeys(addresses))
        return broken

    # --- time ------------------------------------------------------------------------------------------------------------------------

    def pairs(self, candidate: ctypes.c_void_p, rounds: int, inner: int, first: int = 0) -> tuple[list[float], list[float]]:
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

    def _timed(self, candidate: ctypes.c_void_p, number: int, count: int, inner: int) -> tuple[list[float], list[float]]:
        driver, events, order = self.driver, self.events, (0, 1, 1, 0)
        arguments = self.arguments(number, 1)
        start, done = self._together((self.original, candidate), number, arguments, inner)
        for which in (0, 1, 0) if inner > 1 else (0, 1):
            start(which)
        driver.call("cuEventRecord", events[0], None)
        for step in range(4 * count):
            start(order[step % 4])
            driver.call("cuEventRecord", events[step + 1], None)
        driver.wait()
        done()
        each = [driver.milliseconds(events[step], events[step + 1]) * 1e3 / inner for step in range(4 * count)]
        fours = [each[4 * pair : 4 * pair + 4] for pair in range(count)]
        return [(first + fourth) / 2 for first, _, _, fourth in fours], [(second + third) / 2 for _, second, third, _ in fours]

    def _cold(self, candidate: ctypes.c_void_p, number: int, count: int) -> tuple[list[float], list[float]]:
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
        """Run the original: is it the same each time, and how long does it take?"""
        for number in range(len(self.sets)):
            self.inputs(number, number + 1)
        differ = [self.differing(self.original, number, 100 + number) for number in range(len(self.sets))]
        alone, _ = self.pairs(self.original, 3, 1)
        us = statistics.median(alone)
        self.inner = max(1, min(MOST_LAUNCHES, math.ceil(LEAST_US / max(us, 0.1))))
        try:
            self.pairs(self.original, 1, self.inner)
        except DriverFailed:
            self.as_graphs = False
            self.pairs(self.original, 1, self.inner)
        return {"us": us, "inner": self.inner, "graphs": self.as_graphs, "differ": differ, "device": self.driver.name, "kernel": self.launch.kernel}

    def evaluate(self, image: str, seeds: Sequence[int], rounds: Sequence[int], worth: float, fresh: Sequence[int] = ()) -> dict[str, Any]:
        """Compare a candidate with the original, then time it: the first number of rounds, and the next while it may still be worth it.

        What reaches the last rounds is compared on the inputs of `fresh` before them. `seconds` of the answer says where the time went.
        """
        began = time.perf_counter()
        module = self.driver.module(Path(image).read_bytes())
        candidate = self.driver.function(module, self.launch.kernel, self.launch.shared)
        loaded = time.perf_counter()
        differ = [self.differing(candidate, place % len(self.sets), seed) for place, seed in enumerate(seeds)]
        compared = time.perf_counter()
        timed_so_far: dict[str, Any] = {"differ": differ, "original_us": [], "candidate_us": []}
        for stage, count in enumerate(rounds):
            if stage and stage == len(rounds) - 1:
                differ += [self.differing(candidate, len(self.sets) - 1, seed) for seed in fresh]  # the first set keeps its inputs
            if any(differ):
                break
            pairs = self.pairs(candidate, count, self.inner, stage)
            timed_so_far["original_us"] += pairs[0]
            timed_so_far["candidate_us"] += pairs[1]
            if upper([a / b for a, b in zip(timed_so_far["original_us"], timed_so_far["candidate_us"], strict=True)]) < worth:
                break
        timed = time.perf_counter()
        self.driver.call("cuModuleUnload", module)
        parts = {"load": loaded - began, "compare": compared - loaded, "time": timed - compared, "unload": time.perf_counter() - timed}
        timed_so_far["seconds"] = parts
        return timed_so_far

    def epochs(self, image: str, epochs: int, pairs: int, cold: bool = False) -> dict[str, Any]:
        """Time a candidate in epochs: in each both programs are loaded anew, in turn first, for where code lies in the caches changes its time.

        `cold`: single launches, each after FLUSHED bytes were written, so that it finds nothing of its own in the caches.
        """
        images = (Path(self.job["original"]).read_bytes(), Path(image).read_bytes())
        kept = self.original
        times: dict[str, Any] = {"original_us": [], "candidate_us": []}
        for epoch in range(epochs):
            modules: dict[int, ctypes.c_void_p] = {}
            for which in (0, 1) if epoch % 2 == 0 else (1, 0):
                modules[which] = self.driver.module(images[which])
            original, candidate = (self.driver.function(modules[which], self.launch.kernel, self.launch.shared) for which in (0, 1))
            self._use(original)
            original_us, candidate_us = self._cold(candidate, epoch % len(self.sets), pairs) if cold else self.pairs(candidate, pairs, self.inner)
            ratio = statistics.median(a / b for a, b in zip(original_us, candidate_us, strict=True))
            times["original_us"].append(statistics.median(original_us))
            times["candidate_us"].append(statistics.median(original_us) / ratio)
            self._use(kept)
            for module in modules.values():
                self.driver.call("cuModuleUnload", module)
        return times

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

    def arrays(self, folder: str, seed: int) -> dict[str, Any]:
        """Run the original once on new inputs and write its arrays, raw, into a folder."""
        self.held.pop(0, None)
        self.inputs(0, seed)
        self.run(self.original, self.arguments(0, 0))
        self.driver.wait()
        for place, (buffer, (mine, _)) in enumerate(zip(self.launch.buffers, self.sets[0], strict=True)):
            Path(folder, f"{place}.raw").write_bytes(self.driver.read(mine, buffer.bytes))
        return {"kinds": [buffer.kind for buffer in self.launch.buffers], "roles": [buffer.role for buffer in self.launch.buffers]}


def _padded(size: int) -> int:
    return -(-size // 256) * 256


def _value(argument: Argument, size: int, address: int) -> int | float:
    if isinstance(argument, Buffer):
        return address
    return argument


def upper(ratios: Sequence[float]) -> float:
    """Return what the median of many more ratios may be at most: two standard errors above, or the greatest of a few."""
    if len(ratios) < 6:
        return max(ratios)
    middle = statistics.median(ratios)
    spread = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return middle + 2.0 * 1.2533 * spread / math.sqrt(len(ratios))


def serve(job: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> int:
    """Answer requests until the input ends; return the exit code."""
    try:
        session = Session(job)
        say({"ok": True})
    except Exception as error:
        say({"ok": False, "error": f"{type(error).__name__}: {error}", "code": getattr(error, "code", -1)})
        return 2
    names = ("begin", "evaluate", "epochs", "stress", "arrays")
    verbs: dict[str, Callable[..., dict[str, Any]]] = {name: getattr(session, name) for name in names}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = verbs[request.pop("do")](**request)
        except DriverFailed as error:  # the context is lost, and freeing it may hang
            say({"ok": False, "error": str(error), "code": error.code})
            os._exit(3)
        say({"ok": True, **answer})
    return 0


def main() -> int:
    """Run the job named on the command line; what a harness prints goes to the error stream."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    return serve(json.loads(Path(sys.argv[1]).read_text()), say)


if __name__ == "__main__":
    sys.exit(main())
