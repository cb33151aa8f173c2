"""What recorded tasks say of the cost model, technique by technique."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest

from warpwright.base import Action
from warpwright.learn.policy.recorded import RecordedTask
from warpwright.search.costs import NOTHING, PRIOR
from warpwright.search.moves import Recipe

WEIGHTS = {"fuse": (0.4, 0.1), "int8": (-0.8, 0.3), "graph": (0.0, 0.05)}
"""Technique -> mean and deviation of what the cost model errs by."""


def drawn(number: int) -> RecordedTask:
    """Return a task of which every recipe was measured, its own weights drawn."""
    rng = Random(number)
    own = {name: rng.gauss(*weight) for name, weight in WEIGHTS.items()}
    recipes: list[Recipe] = [tuple(map(Action, names)) for count in (0, 1, 2, 3) for names in itertools.combinations(WEIGHTS, count)]
    estimates = {recipe: 1.0 / (1 + len(recipe)) for recipe in recipes}
    speedups = {one: math.exp(sum(own[action.technique] for action in one) + rng.gauss(0, 0.05)) / estimates[one] if one else 1.0 for one in recipes}
    return RecordedTask(f"t{number}", (), None, speedups, {}, estimates)


def test_means_and_variances_are_found_again() -> None:
    pytest.importorskip("torch")
    from warpwright.learn.policy import priors

    prior = priors.learned(drawn(number) for number in range(30))
    for name, (mean, deviation) in WEIGHTS.items():
        assert prior.mean(name) == pytest.approx(mean, abs=0.12) and prior.variance(name) == pytest.approx(deviation**2, abs=0.06)
    assert prior.variance("int8") > prior.variance("graph") and prior.noise == pytest.approx(0.05**2, abs=0.003)
    assert prior.mean("never seen") == 0.0 and prior.variance("never seen") == PRIOR


def test_of_tasks_without_estimates_nothing_is_learned() -> None:
    pytest.importorskip("torch")
    from warpwright.learn.policy import priors

    assert priors.learned([RecordedTask("t", (), None, {(): 1.0, (Action("fuse"),): 2.0})]) == NOTHING
