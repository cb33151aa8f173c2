"""A kernel that fails leaves the device in error for what comes after it: whichever check touches the device next, the program has crashed.

Simulated without a GPU: torch raises the kernel's error again in every later use of the device, and so do the stand-ins here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Verdict
from warpwright.errors import JudgeFailed, WorkerError
from warpwright.verifier import rejections
from warpwright.verifier.judge_client import READING, Judge
from warpwright.verifier.rejections import Rejected, deliberate

pytest.importorskip("torch")

from warpwright.workers.inside.channel import _answer
from warpwright.workers.inside.device import device_failure
from warpwright.workers.inside.runner import Runner

ASSERTED = "CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in the documentation of CUDA for more information."


def asserted(*_: object, **__: object) -> Any:
    raise RuntimeError(ASSERTED)


class BrokenDevice:
    """A worker whose device is in error: every operation that uses it raises; `found` is what its watch would report otherwise."""

    role, alive, freezes, reads, exchange = "candidate", True, False, False, "/nowhere"
    limits = SimpleNamespace(build_seconds=1.0)

    def __init__(self, found: dict[str, list[str]] | None = None) -> None:
        self.loaded: dict[str, Any] = {}
        runner = Runner.__new__(Runner)
        runner.synchronize, runner.device = asserted, "cuda:0"
        runner.watch = SimpleNamespace(report=lambda: found or {})  # type: ignore[assignment]
        self.operations = dict.fromkeys(("prepare", "line_up", "export", "keep", "load_state", "set_state", "switch_mode"), asserted)
        self.operations["census"] = runner.census

    def request(self, op: str, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        return _answer(self.operations, op, fields, lambda: device_failure(asserted))

    with_tensors = request

    def lay_out(self, *_: object, **__: object) -> dict[str, Any]:
        return self.request("prepare")


STEPS: dict[str, Callable[[Any], Any]] = {
    "census": rejections.census,
    "prepare": lambda worker: rejections.prepare_call(worker, "candidate", None),
    "export": rejections.exported,
    "load_state": lambda worker: rejections.write_state(worker, "candidate", {}, "load_state"),
    "set_state": lambda worker: rejections.write_state(worker, "candidate", {}, "set_state", hidden=True),
    "switch_mode": lambda worker: rejections.good(worker.request("switch_mode"), "raised"),
    "line_up": lambda worker: rejections.good(worker.request("line_up"), "resources"),
}


@pytest.mark.parametrize("step", STEPS)
def test_whoever_meets_the_error_it_is_a_crash(step: str) -> None:
    with pytest.raises(Rejected) as caught:
        STEPS[step](BrokenDevice({"patched": ["torch.relu"], "global_flags": ["persisting L2 cache: was 0, is -1"]}))
    verdict = caught.value.verdict
    assert (verdict.check, verdict.status) == ("raised", "crashed")
    assert "device-side assert triggered" in verdict.reason and "Search for" not in verdict.reason


def test_a_crash_stays_one_when_the_watch_is_asked() -> None:
    """After a call that raised, the watch is asked whether a trick was behind it; here it cannot answer."""
    verdict = rejections.rejection("raised", "the call raised: RuntimeError: CUDA error: device-side assert triggered")
    assert deliberate(BrokenDevice(), verdict) is verdict  # type: ignore[arg-type]


def test_an_error_with_the_device_in_order_keeps_the_name_of_its_check() -> None:
    reply = _answer({"census": asserted}, "census", {}, lambda: device_failure(lambda: None))
    with pytest.raises(Rejected) as caught:
        rejections.good(reply, "patched")
    assert caught.value.verdict.check == "patched"


def test_an_error_of_the_build_is_one_still() -> None:
    with pytest.raises(Rejected) as caught:
        rejections.good(BrokenDevice().request("prepare"), "build")
    assert caught.value.verdict.status == "not_built"


class Asked:
    """A judge's process: it cannot open what a worker answered with; of its own memory it can ship something, or not."""

    limits = SimpleNamespace(build_seconds=1.0)

    def __init__(self, sound: bool) -> None:
        self.sound = sound

    def request(self, op: str, timeout: float | None = None, **_: Any) -> dict[str, Any]:
        if op == "probe" and self.sound:
            return {"sum": 1.0}
        return {"error": "IpcError: cuIpcOpenMemHandle returned CUDA error 201", "kind": "IpcError", "message": "cuIpcOpenMemHandle"}

    def log(self) -> str:
        return ""


@pytest.mark.parametrize("op", READING)
@pytest.mark.parametrize("sound", [True, False])
def test_output_that_the_judge_cannot_open_is_the_programs_fault_where_the_judge_is_sound(op: str, sound: bool) -> None:
    judge = Judge.__new__(Judge)
    judge._trims, judge.worker, judge.turn = 0, Asked(sound), threading.RLock()  # type: ignore[assignment]
    with pytest.raises(WorkerError if sound else JudgeFailed) as caught:
        judge._ask(op)
    if sound:
        verdict: Verdict = rejections.verdict_of(caught.value)  # type: ignore[arg-type]
        assert verdict.status == "crashed"
