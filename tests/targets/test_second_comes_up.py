"""A resident evaluator has the second process of the compiled baseline come up beside the first."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from warpwright.base import Build, Candidate, Source
from warpwright.errors import JudgeFailed, WorkerDied
from warpwright.targets.trust import aside
from warpwright.targets.trust.trusted import Baseline

COMPILED = "model = torch.compile(model)"


class Process:
    """A worker's process; `fails`: it does not come up."""

    made: ClassVar[list[Process]] = []
    fails = False
    given: ClassVar[list[float]] = []
    """The seconds that each had to build."""

    def __init__(self, *_: Any) -> None:
        self.alive, self.asked, self.built = True, list[str](), list[str]()
        self.limits, self.thread, self.until = None, threading.get_ident(), 0.0
        Process.made.append(self)

    def greet(self) -> None:
        if Process.fails and len(Process.made) == 1:  # the second one is begun first
            raise WorkerDied("it ended")

    def request(self, op: str, *_: Any, **__: Any) -> dict[str, Any]:
        self.asked.append(op)
        return {}

    def close(self) -> None:
        self.alive = False


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that compiles a baseline aside and gives what comes of it."""
    Process.made, Process.fails = [], False
    monkeypatch.setattr(aside, "Worker", Process)

    def build(judge: Any, worker: Process, name: str, source: Source) -> tuple[Build, None]:
        worker.built.append(name)
        return Build(True), None

    monkeypatch.setattr("warpwright.verifier.verify.build", build)
    Process.given = []
    monkeypatch.setattr(aside.device_yield, "living", set())

    def run(resident: bool) -> tuple[Any, Any, Any]:
        limits = SimpleNamespace(filled=lambda: None)
        bench: Any = SimpleNamespace(resident=resident, place="cuda:0", limits=limits, deadline=None)
        baseline = Baseline(Candidate(Source("python", (("baseline.py", COMPILED),)), "cuda"))
        trusted: Any = SimpleNamespace(judge=SimpleNamespace(worker=SimpleNamespace(alive=True)), aside=[], second={}, second_worker=None)
        trusted.baselines = {"compile": baseline}
        monkeypatch.setattr(aside, "limited", lambda bench, worker, seconds: nullcontext(Process.given.append(seconds)))
        worker, rejected, second = aside.compile_one(bench, trusted, "compile", baseline, 10.0, None)
        assert rejected is None and worker.built == ["compile"]
        return trusted, baseline, second

    return run


def test_the_second_process_of_a_baseline_that_was_built_anew_is_ended(compiling: Any) -> None:
    """What was built there is the first build, which was refused for its results' strides: it is built again when it is asked for."""
    trusted, baseline, second = compiling(True)
    baseline.program, baseline.verdict, baseline.refused = SimpleNamespace(), SimpleNamespace(ok=True), SimpleNamespace(reason="strides")
    aside.take_second(trusted, second, "compile")
    assert not second.alive and trusted.second == {} and trusted.second_worker is None


def test_both_are_built_and_the_second_is_ready_to_be_timed(compiling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted, baseline, second = compiling(True)
    assert Process.given[1] == 2.0 * baseline.seconds + 5.0, "who waits for the baseline waits for both"
    assert second.built == ["compile"] and second.asked == ["load"] and set(trusted.aside) == set(Process.made)
    monkeypatch.setattr(aside.second_process, "take", lambda trusted, worker, name: trusted.second.update({name: worker}))
    baseline.program, baseline.verdict = SimpleNamespace(), SimpleNamespace(ok=True)
    aside.take_second(trusted, second, "compile")
    assert trusted.second == {"compile": second} and trusted.second_worker is second and second.alive


def test_of_a_baseline_that_is_not_right_there_is_no_second_process(compiling: Any) -> None:
    trusted, baseline, second = compiling(True)
    baseline.program, baseline.verdict = SimpleNamespace(), SimpleNamespace(ok=False)
    aside.take_second(trusted, second, "compile")
    assert not second.alive and trusted.second_worker is None and not trusted.second


def test_one_that_does_not_come_up_costs_the_baseline_nothing(compiling: Any) -> None:
    Process.fails = True
    trusted, _, second = compiling(True)
    assert second is None and not trusted.second
    assert [one.alive for one in Process.made] == [False, True], "it holds memory of the GPU"


@pytest.mark.parametrize("problem", [OSError(24, "Too many open files"), JudgeFailed("a worker did not come up")], ids=lambda one: type(one).__name__)
def test_one_that_there_is_no_room_for_costs_the_baseline_nothing(problem: Exception, compiling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: Any) -> Any:
        raise problem

    monkeypatch.setattr(aside, "_come_up_second", no_room)
    _, _, second = compiling(True)
    assert second is None


def test_a_fault_of_ours_in_the_second_is_told_and_leaves_no_process(compiling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(judge: Any, worker: Process, name: str, source: Source) -> tuple[Build, None]:
        worker.built.append(name)
        if worker is Process.made[0]:
            raise ZeroDivisionError("of ours")
        return Build(True), None

    monkeypatch.setattr("warpwright.verifier.verify.build", build)
    with pytest.raises(ZeroDivisionError, match="of ours"):
        compiling(True)
    assert not Process.made[0].alive


def test_without_more_candidates_to_come_there_is_one_process(compiling: Any) -> None:
    _, _, second = compiling(False)
    assert second is None and len(Process.made) == 1
