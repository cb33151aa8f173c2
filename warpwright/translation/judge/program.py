"""A built program in a child process, seen from the parent: inputs and outputs go through shared pages, and the parent holds the clock."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.base import Verdict
from warpwright.errors import UsageError, WorkerDied, WorkerTimeout
from warpwright.native import repeat
from warpwright.translation.child import environment as child_environment
from warpwright.translation.items import Buffer
from warpwright.workers import isolation, placement
from warpwright.workers.sandbox import FIRST_USER, USERS

Array = NDArray[Any]
GUARD_BYTES = 4096
PATTERN = 0xA5
START_SECONDS, CALL_SECONDS = 60.0, 60.0
LEAST_SECONDS = 2e-3
"""Least time of one timed sample: calls are repeated to reach it, so that waking the child (about 30 us) is at most 2 % of it."""
MOST_GROWTH = 1.5
"""Calibration ends when two estimates of the count are closer than this. With two estimates alone, on a busy machine, 1 us was timed as 10 to 20."""


class Program:
    """A function of a library in a child process. `double` stores float32 buffers as float64, for the oracle."""

    def __init__(self, library: Path, entry: str, buffers: Sequence[Buffer], double: bool = False, threads: int = 1) -> None:
        if len(buffers) > repeat.MOST_PARAMETERS:
            raise UsageError(f"expected at most {repeat.MOST_PARAMETERS} parameters, saw {len(buffers)} of {entry}", "this program is left out")
        self.name, self.buffers, self.threads, self.count = entry, tuple(buffers), threads, 1
        self.verdict: Callable[[], Verdict | None] = lambda: None
        self.types = {b.name: np.dtype("float64" if double and b.dtype == "float32" else b.dtype) for b in buffers}
        self.folder = tempfile.mkdtemp(prefix="warpwright-")
        os.chmod(self.folder, 0o755)
        self.offsets: dict[str, int] = {}
        end = GUARD_BYTES
        for buffer in buffers:
            self.offsets[buffer.name] = end
            end += -(-buffer.size * self.types[buffer.name].itemsize // GUARD_BYTES) * GUARD_BYTES + GUARD_BYTES
        arena, copy = os.path.join(self.folder, "arena"), os.path.join(self.folder, "program.so")
        with open(arena, "w+b") as file:
            file.truncate(end)
            self.pages = mmap.mmap(file.fileno(), end)
        self.memory = np.frombuffer(self.pages, np.uint8)
        self.memory[:] = PATTERN
        helper = os.path.join(self.folder, "repeat.so")
        for source, target in ((library, copy), (repeat.library(), helper)):
            shutil.copyfile(source, target)
            os.chmod(target, 0o755)
        user = str(FIRST_USER + int.from_bytes(os.urandom(8)) % USERS) if isolation.can_change_user() else "same"
        offsets = ",".join(str(self.offsets[b.name]) for b in buffers)
        environment = child_environment(threads, OMP_STACKSIZE="256M", PYTHONDONTWRITEBYTECODE="1")
        command = [sys.executable, "-m", "warpwright.translation.judge.runner", copy, helper, entry, arena, offsets, user]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, preexec_fn=_large_stack
        )
        try:
            self._answer(START_SECONDS, b"r")
        except Exception:
            self.close()
            raise

    # -- arrays

    def array(self, name: str) -> Array:
        """Return a buffer as a flat array, in place."""
        buffer = next(b for b in self.buffers if b.name == name)
        kind = self.types[name]
        return self.memory[self.offsets[name] : self.offsets[name] + buffer.size * kind.itemsize].view(kind)

    def fill(self, inputs: Mapping[str, Array]) -> None:
        """Copy inputs into place; fill outputs with NaN, or with PATTERN where they are integers."""
        for buffer in self.buffers:
            array = self.array(buffer.name)
            if buffer.name in inputs:
                array[:] = inputs[buffer.name].reshape(-1)
            elif array.dtype.kind == "f":
                array[:] = np.nan
            else:
                array.view(np.uint8)[:] = PATTERN

    def outputs(self) -> dict[str, Array]:
        """Return copies of the outputs."""
        return {b.name: self.array(b.name).copy() for b in self.buffers if b.role == "output"}

    def damage(self, inputs: Mapping[str, Array]) -> str:
        """Return what the program did to guard zones and inputs; empty where it did nothing."""
        end = 0
        for buffer in self.buffers:
            start = self.offsets[buffer.name]
            if not (self.memory[end:start] == PATTERN).all():
                return f"wrote before {buffer.name}"
            end = start + buffer.size * self.types[buffer.name].itemsize
        if not (self.memory[end:] == PATTERN).all():
            return f"wrote after {self.buffers[-1].name}"
        changed = [name for name, value in inputs.items() if not _same_bits(self.array(name), value.reshape(-1).astype(self.types[name]))]
        return f"changed its input {changed[0]}" if changed else ""

    # -- calls

    def call(self, count: int = 1, timeout: float = CALL_SECONDS) -> float:
        """Call the function `count` times; return the seconds by this process's clock. Raises WorkerDied and WorkerTimeout."""
        assert self.child.stdin is not None
        start = time.perf_counter()
        try:
            self.child.stdin.write(b"g %d\n" % count)
            self.child.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        self._answer(timeout, b"d")
        return time.perf_counter() - start

    def _answer(self, timeout: float, wanted: bytes) -> None:
        assert self.child.stdout is not None
        if not select.select([self.child.stdout], [], [], timeout)[0]:
            self.close()
            raise WorkerTimeout(f"expected the program to return within {timeout:g} s, saw no end; it was killed")
        reply = os.read(self.child.stdout.fileno(), 64)
        if reply != wanted:
            raise self._died() if not reply else WorkerDied(f"expected {wanted!r} from the program's process, saw {reply!r}")

    def _died(self) -> WorkerDied:
        code = self.child.wait()
        self.close()
        return WorkerDied(f"the program's process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}")

    def calibrate(self) -> float:
        """Set how many calls make one timed sample; return the seconds of one call."""
        self.call()
        self.count = 1
        while True:
            seconds = min(self.call(self.count) for _ in range(3)) / self.count
            wanted = max(1, math.ceil(LEAST_SECONDS / max(seconds, 1e-7)))
            if wanted <= MOST_GROWTH * self.count:
                break
            self.count = wanted  # too few: waking the child, or another process, took much of the time
        self.count = wanted
        return seconds

    # -- the interface that `measure.compare` expects

    def prepare(self, inputs: Mapping[str, Array], place: float, /) -> None:
        """Copy inputs into place; a program of one thread stays on the core at `place`."""
        if self.threads == 1:
            placement.take(self.child.pid, place)
        self.fill(inputs)

    def go(self) -> float:
        """Return the seconds of one call, the mean over one sample."""
        return self.call(self.count) / self.count

    def check(self) -> Verdict | None:
        """Return the verdict on the outputs of the last call."""
        return self.verdict()

    def close(self) -> None:
        """End the process and remove its files. May be called again."""
        with contextlib.suppress(OSError):
            self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            with contextlib.suppress(OSError, BrokenPipeError, ValueError):
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays are the same bit by bit, NaN included."""
    return np.array_equal(np.ascontiguousarray(one).view(np.uint8), np.ascontiguousarray(other).view(np.uint8))


def _large_stack() -> None:
    """Allow large arrays on the stack, as HPCTransEval's references have (64 MB and more)."""
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))
