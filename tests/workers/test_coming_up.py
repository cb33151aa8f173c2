"""A worker that ends before it has come up is no program's fault: it is started anew, and its log says why."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.errors import JudgeFailed, WorkerDied
from warpwright.verifier.building import _build
from warpwright.workers import environment
from warpwright.workers.sandbox import TRIES, Worker, up

pytest.importorskip("torch")


class Started:
    """A worker that comes up, or does not."""

    def __init__(self, comes: bool) -> None:
        self.comes, self.closed = comes, False
        self.role, self.limits = "baseline", SimpleNamespace(build_seconds=1.0)

    def greet(self) -> dict[str, Any]:
        if not self.comes:
            raise WorkerDied("the worker process ended: exit code 70; the end of its log: CUDA error: out of memory")
        return {}

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("comes", [[True], [False, True], [False, False, False, True]])
def test_one_that_does_not_come_up_is_started_anew(comes: list[bool]) -> None:
    started = [Started(one) for one in comes]
    waiting = iter(started)
    found = up(lambda: next(waiting))  # type: ignore[arg-type, return-value]
    number = min(comes.index(True), TRIES - 1)
    assert found is started[number]  # type: ignore[comparison-overlap]
    assert [one.closed for one in started] == [True] * number + [False] * (len(started) - number)


def test_one_that_never_does_says_nothing_of_the_program() -> None:
    with pytest.raises(JudgeFailed, match=r"did not come up.*out of memory"):
        _build(SimpleNamespace(facts={}), Started(False), "baseline", None)  # type: ignore[arg-type]


def test_one_that_dies_while_its_memory_is_tried_says_nothing_of_the_program_either() -> None:
    def probe(_: Any) -> None:
        raise WorkerDied("the worker process ended: exit code 9")

    worker = SimpleNamespace(
        role="baseline", limits=SimpleNamespace(build_seconds=1.0), greet=lambda: {"isolation": [], "probe": [0, ""]}, freezes=True,
        memory=SimpleNamespace(probe=probe),
    )  # fmt: skip
    with pytest.raises(JudgeFailed, match=r"did not come up.*exit code 9"):
        _build(SimpleNamespace(facts={}), worker, "baseline", None)  # type: ignore[arg-type]


def test_what_its_own_main_raised_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environment.OWN_PLACES, "TMPDIR", f"..{os.sep}no{os.sep}such{os.sep}place")  # its main makes that folder: not permitted there
    with Worker("candidate", "cpu") as worker, pytest.raises(WorkerDied, match=r"(?s)exit code 70; the end of its log:.*PermissionError"):
        worker.greet()
