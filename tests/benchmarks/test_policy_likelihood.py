"""What a model says of recipes beside the cost model: a search that is told in full, and orders compared."""

from __future__ import annotations

import pytest

from benchmarks.policy.trained import likelihood
from warpwright.base import Action
from warpwright.learn.policy.recorded import RecordedTask
from warpwright.search.costs import NOTHING

SPEEDUPS = {"fast()": 4.0, "middle()": 2.0, "alike()": 2.0, "slow()": 0.5, "wrong()": 0.0}


def task(estimates: dict[str, float]) -> RecordedTask:
    recipes = {name: (Action.parse(name),) for name in SPEEDUPS}
    seconds = {(): 1.0, **{recipes[name]: one for name, one in estimates.items()}}
    return RecordedTask("t", ("relu",), None, {(): 1.0, **{recipes[name]: speed for name, speed in SPEEDUPS.items()}}, estimates=seconds)


def test_the_search_goes_by_hope_and_by_what_is_said_and_no_program_counts_twice() -> None:
    misled = task({"fast()": 0.9, "middle()": 0.5, "alike()": 0.5, "slow()": 0.4, "wrong()": 0.3})
    assert likelihood.line(misled, NOTHING, {}, 4) == [1.0, 1.0, 1.0, 2.0, 4.0]
    fast = (Action.parse("fast()"),)
    assert likelihood.line(misled, NOTHING, {fast: 9.0}, 2) == [1.0, 4.0, 4.0]
    assert likelihood.line(misled, NOTHING, {}, 9)[-1] == 4.0  # the space ends before


def test_orders_are_compared_within_a_task() -> None:
    right = task({"fast()": 0.25, "middle()": 0.5, "alike()": 0.5, "slow()": 2.0, "wrong()": 0.1})
    names = {name: (Action.parse(name),) for name in SPEEDUPS}
    said = {names[name]: -speed for name, speed in SPEEDUPS.items()}
    found = likelihood.ranks(right, NOTHING, said, dict.fromkeys(said, 0.0))
    assert found["cost model with the speed-up"] == pytest.approx(1.0)
    assert found["likelihood with the speed-up"] == pytest.approx(-1.0)
    assert found["head with the speed-up"] == 0.0 and found["head with what is left"] == 0.0
