"""Peaks that a busy machine measured too low are measured again by what comes near them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from warpwright.errors import RooflineError
from warpwright.targets.trust import roof
from warpwright.timing import roofline
from warpwright.timing.rates import Peaks, Work

WORK = Work(1_000_000, 1_000_000)
BENCH = cast(Any, SimpleNamespace(place="cpu", folder=Path("/nowhere"), share=lambda part: 1.0, tell=lambda what: None))


def trusted_with(median: float) -> Any:
    """A task's processes, the fastest of whose baselines takes `median` seconds."""
    single = {"eager": SimpleNamespace(median=median), "not right": SimpleNamespace(median=1e-9)}
    return SimpleNamespace(by_regime={"single": single}, eligible=["eager"], probe=None, floor=0.0, roof={}, work=Work(0, 0))


def measuring(monkeypatch: pytest.MonkeyPatch, *rates: float) -> list[bool]:
    """Have these be the rates that are measured, one after the other; return whether each was asked for again."""
    asked: list[bool] = []

    def peaks(device: str, folder: Path, measure_again: bool = False, **options: object) -> Peaks:
        asked.append(measure_again)
        if len(asked) > len(rates):
            raise RooflineError("there is no time")
        return Peaks(device, rates[len(asked) - 1], 1.0, 0, {"float32": 1.0})

    monkeypatch.setattr(roofline, "peaks", peaks)
    return asked


@pytest.mark.parametrize(("median", "again"), [(0.0025, True), (0.0026, False), (0.001, True)])
def test_who_comes_near_the_peaks_has_them_measured_again(monkeypatch: pytest.MonkeyPatch, median: float, again: bool) -> None:
    asked, trusted = measuring(monkeypatch, 1e9, 4e9), trusted_with(median)
    roof.find(BENCH, trusted, WORK)
    before = trusted.floor
    roof.doubt(BENCH, trusted)
    assert asked == [False, True][: 1 + again]
    assert trusted.roof["peak_bytes_per_second"] == (4e9 if again else 1e9)
    assert trusted.floor == pytest.approx(before / 4 if again else before)


def test_a_floor_is_lowered_or_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, 1e9, 2e9, 2e9)
    trusted = trusted_with(1.0)
    roof.find(BENCH, trusted, WORK)
    assert [roof.raised(BENCH, trusted) for _ in range(3)] == [True, False, False]  # higher; the same; no time
    assert trusted.roof["peak_bytes_per_second"] == 2e9


def test_what_has_no_floor_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, trusted = measuring(monkeypatch), trusted_with(1.0)
    roof.find(BENCH, trusted, WORK)
    assert "floor_note" in trusted.roof and not roof.raised(BENCH, trusted) and asked == [False]
    roof.doubt(BENCH, trusted)
    assert asked == [False]


@pytest.mark.parametrize(("seconds", "again"), [(0.001, True), (0.002, False)])
def test_a_candidate_that_comes_near_the_peaks_has_them_measured_again(monkeypatch: pytest.MonkeyPatch, seconds: float, again: bool) -> None:
    """Its record would end the search ("no headroom")."""
    asked, trusted = measuring(monkeypatch, 1.5e9, 4e9), trusted_with(1.0)
    bench: Any = SimpleNamespace(**vars(BENCH), alone=nullcontext)
    roof.find(bench, trusted, WORK)
    roof.doubt_beside(bench, trusted, seconds)
    assert asked == [False, True][: 1 + again] and trusted.roof["peak_bytes_per_second"] == (4e9 if again else 1.5e9)
