"""The simplest real thing that can be timed: a process that runs one numpy function on one thread when told to."""

from __future__ import annotations

import subprocess
import sys
import time

from warpwright.workers import placement

_PROGRAM = """
import os, sys
import numpy as np
work, rows = sys.argv[1], int(sys.argv[2])
flush = np.zeros(int(sys.argv[3]) // 4, np.int32)
x, out = np.zeros((rows, 4096), np.float32), np.zeros((rows, 4096), np.float32)
requests, replies = os.fdopen(0, "rb", 0), os.fdopen(1, "wb", 0)
while request := requests.read(8):
    seed = int.from_bytes(request, "little")
    if seed:
        x[:] = np.random.default_rng(seed).random(4096, np.float32)
        flush += 1
    elif work != "nothing":
        for _ in range(4 if work == "fourfold" else 1):
            np.exp(x, out=out)
    replies.write(b"k")
"""


class TimedProcess:
    """A process of its own: "exponential" (about 2 ms for 256 rows), "fourfold" (four of them) or "nothing"."""

    def __init__(self, work: str, rows: int = 256, flush_bytes: int = 1 << 24) -> None:
        self.name = work
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, work, str(rows), str(flush_bytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip

    def _ask(self, number: int) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        request = number.to_bytes(8, "little")
        began = time.perf_counter()
        self.process.stdin.write(request)
        answer = self.process.stdout.read(1)
        taken = time.perf_counter() - began
        if answer != b"k":
            raise RuntimeError("the process ended")
        return taken

    def prepare(self, inputs: int, place: float) -> None:
        placement.take(self.process.pid, place)
        self._ask(inputs)

    def go(self) -> float:
        return self._ask(0)

    def check(self) -> None:
        return None

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(10)

    def __enter__(self) -> TimedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
