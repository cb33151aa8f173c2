"""A small speed-up on a GPU is claimed only where a second process of the baseline gives it too."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Comparison, Measurement, Timing
from warpwright.errors import JudgeFailed, WorkerDied
from warpwright.targets.trust import second_process


def measured(speedup: float, verdict: Comparison = "FASTER") -> Measurement:
    """Return a measurement with an interval of 5 % to either side."""
    timings = {"eager": Timing((speedup,), speedup, speedup, speedup)}
    interval = (speedup / 1.05, speedup * 1.05)
    own = Timing((1.0,), 1.0, 1.0, 1.0)
    return Measurement("time of one call", "s", "lower", own, timings, "eager", speedup, interval, verdict, {"regime": "single"})


def test_both_processes_have_to_be_slower() -> None:
    first = measured(1.2)
    for found in (measured(1.02, "UNSURE"), measured(1.0, "SAME"), measured(0.9, "SLOWER")):
        both = second_process.agreed(first, found)
        assert both.verdict == "UNSURE" and "two processes of one program" in str(both.conditions["note"])
        assert both.interval == (found.interval[0], first.interval[1]) and both.speedup == found.speedup


@pytest.mark.parametrize("other", [1.1, 1.22])
def test_what_is_claimed_is_the_smaller_speed_up(other: float) -> None:
    both = second_process.agreed(measured(1.2), measured(other))
    assert (both.verdict, both.speedup) == ("FASTER", min(1.2, other))
    assert both.conditions["speedup_over_second_process"] == other and "note" not in both.conditions


def test_only_small_speed_ups_with_time_left_are_found_again() -> None:
    bench: Any = SimpleNamespace(left=100.0, has_free_cores=True, firm=True, place="cuda:0")
    assert second_process.wanted(bench, measured(1.2))
    assert not second_process.wanted(bench, measured(second_process.CONFIRM_BELOW))
    assert not second_process.wanted(bench, replace(measured(1.2), verdict="UNSURE"))
    for other in ({"left": 5.0}, {"has_free_cores": False}):
        assert not second_process.wanted(SimpleNamespace(**{**vars(bench), **other}), measured(1.2))  # type: ignore[arg-type]
    audited: Any = SimpleNamespace(left=5.0, has_free_cores=True, firm=False, place="cuda:0")
    assert second_process.wanted(audited, measured(1.2)), "within a plan that is not firm no small speed-up is claimed without it"
    on_host = {"has_free_cores": False, "place": "cpu"}
    for one, wanted in ((audited, True), (bench, False)):
        assert second_process.wanted(SimpleNamespace(**{**vars(one), **on_host}), measured(1.2)) is wanted  # type: ignore[arg-type]


def test_what_half_the_time_leaves_unsure_but_above_one_still_holds() -> None:
    first = replace(measured(1.06), conditions={"regime": "single", "speedup_over_eager": 1.06})
    both = second_process.agreed(first, replace(measured(1.055, "UNSURE"), interval=(1.004, 1.1)))
    assert both.verdict == "FASTER" and both.conditions["speedup_over_eager"] == 1.055


@pytest.mark.parametrize("failure", [WorkerDied("it ended"), JudgeFailed("no answer")])
def test_a_second_process_that_does_not_come_up_says_nothing_of_the_candidate(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def worker(*_: Any) -> Any:
        asked.append(1)
        raise failure

    monkeypatch.setattr(second_process, "Worker", worker)
    baseline = SimpleNamespace(seconds=1.0, candidate=SimpleNamespace(source=None))
    trusted: Any = SimpleNamespace(second={}, failed=Counter(), second_worker=None, baselines={"eager": baseline}, aside=[])
    bench: Any = SimpleNamespace(left=100.0, place=None, limits=None, firm=True)
    for _ in range(second_process.TRIES + 2):
        assert second_process.build(bench, trusted, "eager") is None
    assert len(asked) == second_process.TRIES, "one candidate may hold the memory; three in a row do not"
    kept = second_process.unconfirmed(measured(1.2))
    assert kept.verdict == "FASTER" and "no second process" in str(kept.conditions["note"])


def test_no_second_process_is_begun_that_would_take_what_is_left() -> None:
    baseline = SimpleNamespace(seconds=30.0, candidate=SimpleNamespace(source=None))
    trusted: Any = SimpleNamespace(second={}, failed=Counter(), baselines={"compile": baseline}, aside=[])
    assert second_process.build(SimpleNamespace(left=100.0, firm=True), trusted, "compile") is None  # type: ignore[arg-type]
    assert not trusted.second


def test_one_second_process_holds_every_baseline_that_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU each process holds memory that a candidate may need."""
    started, built, closed = [], [], []

    def worker(*_: Any) -> Any:
        started.append(1)
        return SimpleNamespace(alive=True, until=0.0, close=lambda: closed.append(1))

    def build(judge: Any, worker: Any, name: str, source: Any) -> tuple[None, None]:
        built.append(name)
        return None, None

    monkeypatch.setattr(second_process, "Worker", worker)
    monkeypatch.setattr("warpwright.verifier.verify.build", build)
    monkeypatch.setattr(second_process, "take", lambda trusted, worker, name: trusted.second.update({name: SimpleNamespace(worker=worker)}))
    baseline = SimpleNamespace(seconds=1.0, candidate=SimpleNamespace(source=None))
    both = {"eager": baseline, "compile": baseline}
    trusted: Any = SimpleNamespace(second={}, failed=Counter(), second_worker=None, judge=None, baselines=both, aside=[])
    bench: Any = SimpleNamespace(left=100.0, place=None, limits=None, firm=True, building=lambda source: contextlib.nullcontext())
    one, other, again = (second_process.build(bench, trusted, name) for name in ("eager", "compile", "eager"))
    assert one is not None and one is again and other is not None and one.worker is other.worker
    assert (len(started), built, closed, len(trusted.aside)) == (1, ["eager", "compile"], [], 1)


def test_a_second_process_that_has_died_comes_up_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it every small speed-up to come would stand unconfirmed."""
    workers: list[Any] = []

    def worker(*_: Any) -> Any:
        workers.append(SimpleNamespace(alive=True, until=0.0, close=lambda: None))
        return workers[-1]

    monkeypatch.setattr(second_process, "Worker", worker)
    monkeypatch.setattr("warpwright.verifier.verify.build", lambda *_: (None, None))
    monkeypatch.setattr(second_process, "take", lambda trusted, worker, name: trusted.second.update({name: SimpleNamespace(worker=worker)}))
    baseline = SimpleNamespace(seconds=1.0, candidate=SimpleNamespace(source=None))
    both = {"eager": baseline, "compile": baseline}
    trusted: Any = SimpleNamespace(second={}, failed=Counter(), second_worker=None, judge=None, baselines=both, aside=[])
    bench: Any = SimpleNamespace(left=100.0, place=None, limits=None, firm=True, building=lambda source: contextlib.nullcontext())
    for name in ("eager", "compile"):
        second_process.build(bench, trusted, name)
    workers[0].alive = False
    found = second_process.build(bench, trusted, "eager")
    assert found is not None and found.worker is workers[1] and set(trusted.second) == {"eager"}


def test_what_was_timed_beside_both_processes_is_not_found_again() -> None:
    bench: Any = SimpleNamespace(left=100.0, has_free_cores=True, firm=False, place="cuda:0")
    for name, wanted in (("eager", False), ("compile", True)):
        found = replace(measured(1.2), conditions={"regime": "single", "second_process": name})
        assert second_process.wanted(bench, found) is wanted
