"""What a worker may do after its last call: wait busily on many cores, and no more."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from built_worker import NO_INPUTS, build

from warpwright.errors import WorkerTimeout
from warpwright.verifier import verify
from warpwright.verifier.rejections import Rejected
from warpwright.workers import process
from warpwright.workers.process import Activity
from warpwright.workers.sandbox import Worker


def look(*activities: Activity) -> None:
    coming = iter(activities)
    worker: Any = SimpleNamespace(activity=lambda seconds: next(coming), device="cpu")
    judged: Any = SimpleNamespace(worker=worker)
    verify._Verification.idle(judged, "")


SILENT = Activity(0.0, 0.0, 0.05, 0, 0)
SPINNING = Activity(0.12, 0.0, 0.054, 0, 1)


def test_many_threads_that_wait_busily_are_silent_a_moment_later() -> None:
    look(SILENT)
    look(SPINNING, SILENT)


@pytest.mark.parametrize(
    "activities",
    [
        (SPINNING, SPINNING),
        (Activity(0.05, 0.035, 0.05, 0, 0),),
        (SPINNING, Activity(0.03, 0.03, 0.05, 0, 0)),
        (Activity(0.12, 0.0, 0.054, 0, 9), SILENT),
    ],
)
def test_work_goes_on(activities: tuple[Activity, ...]) -> None:
    with pytest.raises(Rejected) as refused:
        look(*activities)
    assert refused.value.verdict.check == "background"


@pytest.mark.parametrize(("each", "unexplained"), [(0.012, 0.0), (0.045, 31 * 0.030)])
def test_what_busy_waiting_explains(each: float, unexplained: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 threads that used so much each, the main one nothing."""
    looks = iter([{}, {(7, 7): 0.0, **{(7, thread): each for thread in range(8, 39)}}])
    made: Any = SimpleNamespace(pid=7, _cpu_seconds=lambda: next(looks), _switches=dict, children=lambda: 0, thaw=lambda: None, freeze=lambda: None)
    monkeypatch.setattr(process.os, "cpu_count", lambda: 16)
    seen = Worker.activity(made, 0.0)
    assert seen.cpu_seconds == pytest.approx(31 * each - 15 * process.SPIN_SECONDS)
    assert seen.unexplained == pytest.approx(unexplained)


SLEEPS = "import time, torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self):\n        time.sleep(60)\n"


def test_no_call_is_awaited_longer_than_its_worker_may_live() -> None:
    with Worker("candidate") as worker:
        worker.request("hello")
        build(worker, SLEEPS)
        worker.lay_out("candidate", NO_INPUTS)
        began = time.monotonic()
        worker.until = began + 0.5
        with pytest.raises(WorkerTimeout):
            worker.go(60.0)
        assert time.monotonic() - began < 20
