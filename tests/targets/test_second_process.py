"""A small speed-up on a GPU is claimed only where a second process of the baseline gives it too."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Comparison, Measurement, Timing
from warpwright.errors import JudgeFailed, WorkerDied
from warpwright.targets import second_process


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
    trusted: Any = SimpleNamespace(second={}, baselines={"eager": baseline}, aside=[])
    bench: Any = SimpleNamespace(left=100.0, place=None, limits=None, firm=True)
    assert second_process.build(bench, trusted, "eager") is None and second_process.build(bench, trusted, "eager") is None
    assert len(asked) == 1  # nor is it tried again for the next candidate
    kept = second_process.unconfirmed(measured(1.2))
    assert kept.verdict == "FASTER" and "no second process" in str(kept.conditions["note"])


def test_no_second_process_is_begun_that_would_take_what_is_left() -> None:
    baseline = SimpleNamespace(seconds=30.0, candidate=SimpleNamespace(source=None))
    trusted: Any = SimpleNamespace(second={}, baselines={"compile": baseline}, aside=[])
    assert second_process.build(SimpleNamespace(left=100.0, firm=True), trusted, "compile") is None  # type: ignore[arg-type]
    assert not trusted.second


def test_only_one_second_process_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU each holds memory that a candidate may need."""
    closed = []
    kept: Any = SimpleNamespace(worker=SimpleNamespace(close=lambda: closed.append("eager"), alive=True))
    monkeypatch.setattr(second_process, "Worker", lambda *_: (_ for _ in ()).throw(WorkerDied("it ended")))
    baseline = SimpleNamespace(seconds=1.0, candidate=SimpleNamespace(source=None))
    baselines = {"eager": baseline, "compile": baseline}
    trusted: Any = SimpleNamespace(second={"eager": kept, "cuda_graph": None}, baselines=baselines, aside=[kept.worker])
    bench: Any = SimpleNamespace(left=100.0, place=None, limits=None, firm=True)
    assert second_process.build(bench, trusted, "eager") is kept and not closed
    assert second_process.build(bench, trusted, "compile") is None
    assert closed == ["eager"] and trusted.second == {"compile": None} and not trusted.aside
