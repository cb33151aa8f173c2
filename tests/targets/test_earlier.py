"""A speed-up over a baseline that is slower than it was in other answers is not claimed."""

from __future__ import annotations

from typing import Any

import pytest

from warpwright.base import Measurement, Regime, Timing
from warpwright.targets.earlier import FEWEST, Earlier


def answer(baseline: float, candidate: float = 58e-6, verdict: Any = "FASTER") -> Measurement:
    ratio = baseline / candidate
    beside = {"compile": Timing((baseline,), baseline, baseline, baseline)}
    own = Timing((candidate,), candidate, candidate, candidate)
    span = (0.99 * ratio, 1.01 * ratio)
    regime = Regime(candidate, {"compile": baseline}, "compile", ratio, span, verdict, "")
    return Measurement("time", "s", "lower", own, beside, "compile", ratio, span, verdict, {"regime": "stream"}, {"stream": regime})


def after(*baselines: float) -> Earlier:
    earlier = Earlier()
    for one in baselines:
        assert "note" not in earlier.beside(answer(one, verdict="UNSURE")).conditions
    return earlier


@pytest.mark.parametrize(("now", "candidate", "verdict", "noted"), [
    (61e-6, 58e-6, "UNSURE", True), (61e-6, 40e-6, "FASTER", True), (47e-6, 44e-6, "FASTER", False),
])  # fmt: skip
def test_it_is_claimed_where_it_would_be_beside_the_baseline_as_it_was(now: float, candidate: float, verdict: str, noted: bool) -> None:
    found = after(46e-6, 46e-6, 47e-6, 46e-6).beside(answer(now, candidate))
    assert found.verdict == found.regimes["stream"].verdict == verdict and ("note" in found.conditions) == noted
    assert found.interval == answer(now, candidate).interval


def test_a_few_answers_say_nothing_and_one_quick_one_little() -> None:
    assert after(*[46e-6] * (FEWEST - 1)).beside(answer(61e-6)).verdict == "FASTER"
    mixed = after(61e-6, 61e-6, 61e-6, 61e-6, 46e-6)
    assert mixed.beside(answer(61e-6, 55e-6)).verdict == "FASTER"
