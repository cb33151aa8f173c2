"""The judge answers one request at a time, from whatever thread it comes: while baselines are compiled aside, others are verified."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

from warpwright.verifier.judge_client import Judge


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
