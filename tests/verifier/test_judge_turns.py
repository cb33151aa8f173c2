"""The judge answers one request at a time, from whatever thread it comes: while baselines are compiled aside, others are verified."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import corpus
import pytest

from warpwright.base import Case, to_json
from warpwright.verifier.draw import MIXED
from warpwright.verifier.judge import judge_worker
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


def test_what_is_shipped_to_one_thread_stays_while_another_is_shipped_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of large inputs the latest alone stays: a baseline that was built beside took them from whoever was being verified."""
    monkeypatch.setattr(judge_worker, "LARGE_BYTES", 0)
    worker = judge_worker.JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": []})
    worker.open(to_json(corpus.task("relu")), "abcdef0123456789", False)
    first, second, third = (asdict(Case("nominal", seed)) for seed in (1, 2, 3))
    worker.ship(first, to=7)
    worker.ship(second, to=8)
    assert [one.rpartition("-")[2] for one in worker.shipped] == ["7", "8"]
    worker.ship(third, to=8)
    worker.ship(first, to=8)  # the same case, of its own
    assert [one.rpartition("-")[2] for one in worker.shipped] == ["7", "8"]
    worker.forget()
    assert not worker.shipped


def test_a_state_with_one_change_stays_when_a_plain_one_is_shipped(tmp_path: Path) -> None:
    worker = judge_worker.JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": []})
    worker.open(to_json(corpus.task("layernorm")), "abcdef0123456789", False)
    worker.state(MIXED)
    worker.state(2)
    assert MIXED in worker.states
    worker.state(MIXED + 1)
    assert MIXED not in worker.states and MIXED + 1 in worker.states
