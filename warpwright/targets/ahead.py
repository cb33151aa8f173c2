"""What a run with a budget of time starts while its program is still being read: the judge, the baselines that need no compiler, and where cores
are to spare the count of the task's work and torch.compile's first compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from warpwright.base import Candidate, to_json
from warpwright.space import silent
from warpwright.targets import building
from warpwright.targets.trusted import Trusted, Workbench
from warpwright.workers.isolation import can_change_user
from warpwright.workers.sandbox import trusted_caches

SPARE_CORES = 4
"""With fewer, what runs beside the reading of the program only slows it down: each of these processes imports torch."""

SOON_SECONDS = 0.05
"""How often a wait looks whether its thread has ended: in steps, so that a deadline ends it outside of the main thread too."""


def begin(bench: Workbench, candidates: Sequence[Candidate], regime: str, both: bool) -> Ahead:
    """Start the trusted processes of a task beside whatever comes next; `candidates` are its baselines."""
    bench = replace(bench, tell=silent)
    spare = bench.place != "cpu" and (os.cpu_count() or 1) >= SPARE_CORES
    slow = building.compiled(bench, candidates) if spare and not bench.task.option("backward") else []
    compiling = Precompiling(bench, slow) if slow else None
    counting = building.Counting(bench) if spare else None

    def start() -> Trusted:
        trusted = building.start(bench, candidates, regime, both)
        trusted.compiling, trusted.counting = compiling, counting
        try:
            building.add_quick_baselines(bench, trusted)
        except BaseException:
            trusted.close()
            raise
        return trusted

    return Ahead(start, compiling)


class Ahead(threading.Thread):
    """Trusted processes that come up in a thread of their own. A failure is forgotten: whoever needs them starts them once more, and sees it."""

    def __init__(self, start: Callable[[], Trusted], compiling: Precompiling | None) -> None:
        super().__init__(name="warpwright ahead", daemon=True)
        self._begin, self._compiling = start, compiling
        self._lock, self._abandoned = threading.Lock(), False
        self._trusted: Trusted | None = None
        self.start()

    def run(self) -> None:
        trusted = None
        with suppress(Exception):
            trusted = self._begin()
        with self._lock:
            if not self._abandoned:
                self._trusted = trusted
                return
        if trusted is not None:
            trusted.close()

    def result(self) -> Trusted | None:
        """Wait for the processes and hand them over; None where they did not come up."""
        while self.is_alive():
            self.join(SOON_SECONDS)
        trusted, self._trusted = self._trusted, None
        return trusted

    def abandon(self) -> None:
        """Have the processes ended as soon as they are up; nobody needs them."""
        with self._lock:
            self._abandoned, trusted, self._trusted = True, self._trusted, None
        if trusted is not None:
            trusted.close()
        if self._compiling is not None:
            self._compiling.close()


class Precompiling:
    """A process that compiles baselines, so that the worker that holds them finds their kernels in torch's cache."""

    def __init__(self, bench: Workbench, candidates: Sequence[Candidate]) -> None:
        order = {
            "task": to_json(bench.task), "place": bench.place, "builds": str(bench.folder / "builds"),
            "programs": {one.key: one.source.text for one in candidates},
        }  # fmt: skip
        environment = {**os.environ, **trusted_caches(can_change_user())}
        command = [sys.executable, "-m", "warpwright.targets.precompile"]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as pipe:
            pipe.write(json.dumps(order).encode())

    def wait(self, seconds: float) -> None:
        """Wait until it is over, at most so long; afterwards it is ended."""
        until = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < until:
            time.sleep(SOON_SECONDS)
        self.close()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


