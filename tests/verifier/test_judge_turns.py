"""The judge answers one request at a time, from whatever thread it comes: while baselines are compiled aside, others are verified."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

from warpwright.verifier.judge_client import Judge
from warpwright.workers.sandbox import Worker


class OneAtATime:
    """A worker that notes whether two requests were under way at once."""

    def __init__(self) -> None:
        self.limits = SimpleNamespace(build_seconds=10.0)
        self.busy, self.overlapped = 0, False

    def request(self, op: str, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        """Answer after a while."""
        self.busy += 1
        self.overlapped |= self.busy > 1
        time.sleep(0.02)
        self.busy -= 1
        return {"tensor": "handle", "sum": 1.0, "state": None}


def test_a_probe_waits_for_another_threads_request() -> None:
    judge = Judge.__new__(Judge)
    judge.worker, judge.device, judge.turn, judge._beside = OneAtATime(), "cuda:0", threading.RLock(), WeakSet()  # type: ignore[assignment]
    judge._trims = 0
    asking = threading.Thread(target=lambda: [judge.state(0) for _ in range(5)])
    asking.start()
    for _ in range(5):
        judge.probe(OneAtATime())  # type: ignore[arg-type]
    asking.join(10)
    assert not judge.worker.overlapped  # type: ignore[attr-defined]


class Asked(Worker):
    """A worker on a GPU that notes what it is asked."""

    alive = True

    def __init__(self) -> None:
        self.device, self.asking, self.ops = "cuda:0", threading.RLock(), list[str]()

    def request(self, op: str, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        """Note it."""
        self.ops.append(op)
        return {}

    def close(self) -> None:
        """It has no process."""


def test_a_worker_that_stands_still_or_is_busy_is_not_asked_for_memory() -> None:
    worker = Asked()
    worker.still = True
    worker.trim()
    assert not worker.ops  # it would not answer, and be ended for that after a minute
    worker.still = False
    done, held = threading.Event(), threading.Event()

    def compile_aside() -> None:
        with worker.asking:
            held.set()
            done.wait(10)

    other = threading.Thread(target=compile_aside)
    other.start()
    held.wait(10)
    worker.trim()
    assert not worker.ops  # the two answers would be mixed up
    done.set()
    other.join(10)
    worker.trim()
    assert worker.ops == ["trim"]
