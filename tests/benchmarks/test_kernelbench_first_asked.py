"""Whose request needs an answer of the original first."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.kernelbench import first_asked
from warpwright.verifier.judge_client import Judge


def case(seed: int) -> dict[str, Any]:
    return {"name": "nominal", "seed": seed, "params": {}}


def test_a_pair_of_case_and_state_is_counted_for_who_asked_first() -> None:
    counted = first_asked.FirstAsked()
    counted.note("certify", {"cases": [case(1), case(2)]})
    counted.note("viable", {"case": case(3), "which": 0})
    counted.note("compare", {"case": case(3), "which": 0, "tree": None})
    counted.note("compare", {"case": case(4), "which": 2, "tree": None})
    counted.note("settle", {"case": case(3), "which": 1})
    counted.note("ship", {"case": case(5)})
    assert counted.counts == {"certified": 1, "sound": 2, "compared": 1}


def test_requests_are_noted_and_answered_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "_ask", lambda judge, op, timeout=None, **fields: {"op": op, "timeout": timeout, **fields})
    before, counted, judge = Judge._ask, first_asked.FirstAsked(), object.__new__(Judge)
    with first_asked.counting(counted):
        assert judge._ask("viable", 3.0, case=case(1), which=1) == {"op": "viable", "timeout": 3.0, "case": case(1), "which": 1}
    assert counted.counts == {"sound": 1} and Judge._ask is before
