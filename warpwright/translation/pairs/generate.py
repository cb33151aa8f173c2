"""Generate pairs into a folder: batches to child processes, results in the order of their numbers, duplicates out, shards written.

The same seed gives the same pairs in the same order, whatever the number of processes; only measured times, and with them the choice
among the C candidates, differ between runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warpwright.errors import UsageError
from warpwright.translation.pairs.data_set import Folder
from warpwright.translation.pairs.draft import Options

BATCH = 12
"""Drafts built together: enough to share the compiler's start-up, few enough to lose little to a crash."""

BATCH_SECONDS = 240.0
BATCHES_OF_A_WORKER = 40
"""Then it is replaced, since libraries stay loaded."""

SHARD = 200

Told = Callable[[str], None]


@dataclass
class Result:
    """What a run came to."""

    pairs: int = 0
    drafts: int = 0
    seconds: float = 0.0
    rejected: Counter[str] = field(default_factory=Counter)
    """Class of reason -> how many."""
    reasons: list[str] = field(default_factory=list)
    """The first 20 that are faults of the generator: wrong, not_built, crashed, out_of_bounds."""

    @property
    def per_minute(self) -> float:
        """Verified pairs a minute."""
        return 60 * self.pairs / self.seconds if self.seconds else 0.0


FAULTS = frozenset({"wrong", "not_built", "crashed", "timeout", "out_of_bounds", "input_changed", "failed"})


def generate(
    folder: Path, count: int | None, minutes: float | None, options: Options, jobs: int, resume: bool, threads: int = 1, tell: Told = lambda _: None
) -> Result:
    """Write verified pairs until there are `count`, or `minutes` are over, or both are None and the user interrupts."""
    target = Folder.open(folder, options, resume)
    result, began = Result(), time.monotonic()
    if count is not None and target.total >= count:
        tell(f"{folder} holds {target.total} pairs already")
        return result
    end = began + 60 * minutes if minutes is not None else float("inf")
    pool = _Pool(options, jobs, threads, target.next_index)
    try:
        for said in pool.in_order():
            _take(said, target, result)
            result.seconds = time.monotonic() - began
            if result.drafts % 50 == 0:
                tell(f"{result.pairs} pairs of {result.drafts} drafts, {result.per_minute:.0f} a minute")
            if (count is not None and target.total >= count) or time.monotonic() > end:
                break
    finally:
        pool.close()
        target.flush()
        target.card(result.rejected)
    return result


def _take(said: dict[str, Any], target: Folder, result: Result) -> None:
    result.drafts += 1
    target.next_index = said["index"] + 1
    if "pair" not in said:
        kind = said["rejected"].partition(":")[0]
    elif said["pair"]["id"] in target.known:
        kind = "duplicate"
    else:
        target.add(said["pair"], SHARD)
        result.pairs += 1
        return
    result.rejected[kind] += 1
    if kind in FAULTS and len(result.reasons) < 20:
        result.reasons.append(f"{said['index']}: {said['rejected']}")


# --- the child processes ---------------------------------------------------------------------------------------------------------------


class _Pool:
    """Threads, each with a child process at a time, that take batches of numbers in turn."""

    def __init__(self, options: Options, jobs: int, threads: int, first: int) -> None:
        if jobs < 1 or threads < 1:
            raise UsageError(f"expected at least one process and one thread, saw {jobs} and {threads}")
        self.options, self.first = options, first
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
        paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
        self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self.results: queue.Queue[dict[str, Any] | BaseException] = queue.Queue(maxsize=4 * BATCH * jobs)
        self.lock, self.next, self.closed = threading.Lock(), first, False
        self.children: set[subprocess.Popen[str]] = set()
        for _ in range(jobs):
            threading.Thread(target=self._serve, daemon=True).start()

    def in_order(self) -> Iterator[dict[str, Any]]:
        """Yield results by their numbers."""
        waiting: dict[int, dict[str, Any]] = {}
        index = self.first
        while True:
            said = self.results.get()
            if isinstance(said, BaseException):
                raise said
            waiting[said["index"]] = said
            while index in waiting:
                yield waiting.pop(index)
                index += 1

    def close(self) -> None:
        """Stop: children are killed, and what they had not finished is forgotten."""
        self.closed = True
        for child in tuple(self.children):
            with contextlib.suppress(OSError):
                child.kill()
            child.wait()
        while not self.results.empty():
            self.results.get_nowait()

    def _serve(self) -> None:
        try:
            child, batches = None, 0
            while not self.closed:
                with self.lock:
                    indices = list(range(self.next, self.next + BATCH))
                    self.next += BATCH
                while indices and not self.closed:
                    if child is None or child.poll() is not None or batches >= BATCHES_OF_A_WORKER:
                        self._end(child)
                        child, batches = self._start(), 0
                    batches += 1
                    indices = self._batch(child, indices)
            self._end(child)
        except BaseException as error:  # handed to the thread that waits for results, which raises it
            self.results.put(error)

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "warpwright.translation.pairs.worker"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)
        self.children.add(child)
        return child

    def _end(self, child: subprocess.Popen[str] | None) -> None:
        if child is not None:
            child.kill()
            child.wait()
            self.children.discard(child)

    def _batch(self, child: subprocess.Popen[str], indices: list[int]) -> list[int]:
        """Have a batch done; return the numbers that are left when the child died, without the one that killed it."""
        left, running, over = set(indices), -1, threading.Event()

        def expire() -> None:
            over.set()
            child.kill()

        timer = threading.Timer(BATCH_SECONDS, expire)
        timer.start()
        try:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write(json.dumps({"options": asdict(self.options), "indices": indices}) + "\n")
            child.stdin.flush()
            for line in child.stdout:
                said = json.loads(line)
                if "done" in said:
                    return []
                if "begin" in said:
                    running = said["begin"]
                    continue
                left.discard(said["index"])
                running = -1
                self.results.put(said)
        except BrokenPipeError:
            pass  # it died before it took the batch: the code below tells which draft did it
        finally:
            timer.cancel()
        if self.closed:
            return []
        if running < 0:
            if len(left) > 1:  # died while it built: halve the batch until one is alone
                half = sorted(left)[: len(left) // 2]
                rest = self._batch_alone(half)
                return sorted((left - set(half)) | set(rest))
            running = next(iter(left))
        left.discard(running)
        how = f"no answer within {BATCH_SECONDS:g} s" if over.is_set() else f"the process ended with {child.wait()}"
        self.results.put({"index": running, "rejected": f"{'timeout' if over.is_set() else 'crashed'}: {how}"})
        return sorted(left)

    def _batch_alone(self, indices: list[int]) -> list[int]:
        child = self._start()
        try:
            return self._batch(child, indices)
        finally:
            self._end(child)
