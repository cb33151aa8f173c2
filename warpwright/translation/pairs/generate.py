"""Generate pairs into a folder: batches go to child processes, results come back in order, duplicates are dropped, shards are written.

The same seed gives the same pairs in the same order, whatever the number of processes; only measured times, and with them the choice
among the C candidates, differ between runs.
"""

from __future__ import annotations

import contextlib
import json
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
from warpwright.translation.child import environment as child_environment
from warpwright.translation.pairs.data_set import Folder
from warpwright.translation.pairs.draft import Options

BATCH = 12
"""Drafts built together: enough to share the compiler's start-up, few enough to lose little in a crash."""

BATCH_SECONDS = 240.0
BATCHES_OF_A_WORKER = 40
"""After so many a worker is replaced, since libraries stay loaded."""

SHARD = 200

Tell = Callable[[str], None]


@dataclass
class Result:
    """The outcome of a run."""

    pairs: int = 0
    drafts: int = 0
    seconds: float = 0.0
    rejected: Counter[str] = field(default_factory=Counter)
    """Class of reason -> number of drafts."""
    reasons: list[str] = field(default_factory=list)
    """The first 20 reasons that are faults of the generator (FAULTS)."""

    @property
    def per_minute(self) -> float:
        """Verified pairs a minute."""
        return 60 * self.pairs / self.seconds if self.seconds else 0.0


FAULTS = frozenset({"wrong", "not_built", "crashed", "timeout", "out_of_bounds", "input_changed", "failed"})


def generate(
    folder: Path, count: int | None, minutes: float | None, options: Options, jobs: int, resume: bool, threads: int = 1, tell: Tell = lambda _: None
) -> Result:
    """Write verified pairs until there are `count`, or `minutes` are over; with neither, until the user interrupts. Raises UsageError."""
    target = Folder.open(folder, options, resume)
    result, began = Result(), time.monotonic()
    if count is not None and target.total >= count:
        tell(f"{folder} holds {target.total} pairs already")
        return result
    end = began + 60 * minutes if minutes is not None else float("inf")
    pool = _Pool(options, jobs, threads, target.next_index)
    try:
        for outcome in pool.in_order():
            _take(outcome, target, result)
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


def _take(outcome: dict[str, Any], target: Folder, result: Result) -> None:
    result.drafts += 1
    target.next_index = outcome["index"] + 1
    if "pair" not in outcome:
        kind = outcome["rejected"].partition(":")[0]
    elif outcome["pair"]["id"] in target.known:
        kind = "duplicate"
    else:
        target.add(outcome["pair"], SHARD)
        result.pairs += 1
        return
    result.rejected[kind] += 1
    if kind in FAULTS and len(result.reasons) < 20:
        result.reasons.append(f"{outcome['index']}: {outcome['rejected']}")


# --- the child processes ---------------------------------------------------------------------------------------------------------------


class _Pool:
    """Threads that take batches of indices in turn, each with one child process at a time."""

    def __init__(self, options: Options, jobs: int, threads: int, first: int) -> None:
        if jobs < 1 or threads < 1:
            raise UsageError(f"expected at least one process and one thread, saw {jobs} and {threads}")
        self.options, self.first = options, first
        self.environment = child_environment(threads, OPENBLAS_NUM_THREADS="1")
        self.results: queue.Queue[dict[str, Any] | BaseException] = queue.Queue(maxsize=4 * BATCH * jobs)
        self.lock, self.next, self.closed = threading.Lock(), first, False
        self.children: set[subprocess.Popen[str]] = set()
        for _ in range(jobs):
            threading.Thread(target=self._serve, daemon=True).start()

    def in_order(self) -> Iterator[dict[str, Any]]:
        """Yield outcomes in the order of their indices. Raises what a thread of the pool raised."""
        waiting: dict[int, dict[str, Any]] = {}
        index = self.first
        while True:
            outcome = self.results.get()
            if isinstance(outcome, BaseException):
                raise outcome
            waiting[outcome["index"]] = outcome
            while index in waiting:
                yield waiting.pop(index)
                index += 1

    def close(self) -> None:
        """Kill the children and drop what they had not finished."""
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
        """Have a batch done; return the indices that are left where the child died, without the one that killed it."""
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
                outcome = json.loads(line)
                if "done" in outcome:
                    return []
                if "begin" in outcome:
                    running = outcome["begin"]
                    continue
                left.discard(outcome["index"])
                running = -1
                self.results.put(outcome)
        except BrokenPipeError:
            pass  # it died before it read the batch: below, halving finds the draft that did it
        finally:
            timer.cancel()
        if self.closed:
            return []
        if running < 0:
            if len(left) > 1:  # it died while building: halve the batch until one draft is left
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
