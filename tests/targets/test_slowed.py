"""A program that slows a baseline down while that is timed is found out; one that lets it alone is not, whatever the noise."""

from __future__ import annotations

import math
from contextlib import contextmanager
from itertools import product
from random import Random
from typing import Any

import pytest

from warpwright.targets import slowed


class Beside:
    """A candidate and a baseline, which it slows down in a share of its turns unless it is stopped."""

    def __init__(self, rng: Random, by: float, share: float, spread: float) -> None:
        self.rng, self.by, self.share, self.spread, self.stands, self.calls = rng, by, share, spread, False, 0
        self.name = ""

    def prepare(self, inputs: Any, place: float) -> None:
        pass

    def go(self) -> float:
        self.calls += 1
        slow = 1.0 if self.stands or self.rng.random() > self.share else self.by
        return 1e-2 * slow * math.exp(self.rng.gauss(0.0, self.spread)) * (3.0 if self.rng.random() < 0.05 else 1.0)

    def check(self) -> None:
        return None

    @contextmanager
    def stopped(self) -> Any:
        self.stands = True
        yield
        self.stands = False


def found(by: float, share: float = 1.0, spread: float = 0.05, runs: int = 60) -> int:
    every = [Beside(Random(seed), by, share, spread) for seed in range(runs)]
    return sum(slowed.slowed(one, one, lambda: None, one.stopped, Random(one.calls)) > 1.0 for one in every)


@pytest.mark.parametrize("spread", [0.005, 0.05, 0.2])
def test_a_program_that_lets_others_alone_is_not_refused(spread: float) -> None:
    assert found(1.0, spread=spread, runs=80) == 0


@pytest.mark.parametrize(("by", "share", "least"), [(1.3, 1.0, 50), (1.15, 1.0, 48), (1.3, 0.6, 27)])
def test_one_that_slows_them_down_is_mostly(by: float, share: float, least: int) -> None:
    assert found(by, share) >= least


def test_the_probability_is_that_of_all_signs() -> None:
    sizes = [0.1, 0.3, 0.2, 0.7, 0.5]
    signs = [[one * size for one, size in zip(row, sizes, strict=True)] for row in product((1, -1), repeat=5)]
    sums = [sum(rank for rank, one in enumerate(sorted(row, key=abs), 1) if one > 0) for row in signs]
    for row, total in zip(signs, sums, strict=True):
        assert slowed.probability(row) == pytest.approx(sum(one >= total for one in sums) / 32)


def test_it_ends_early_where_nothing_is_suspected() -> None:
    one = Beside(Random(3), 1.0, 1.0, 0.05)
    slowed.slowed(one, one, lambda: None, one.stopped, Random(4))
    assert 4 * slowed.FIRST_ROUNDS <= one.calls <= (2 + 2 * slowed.MOST_TURNS) * slowed.LOOKS[-1]


def test_a_program_that_is_suspected_by_chance_is_let_go_when_it_is_surely_harmless() -> None:
    """A bias of 0.4 % is suspected as a rule, and is no slowing down; 5 % is, and is not let go."""
    calls, refused = [], 0
    for seed in range(40):
        one = Beside(Random(seed), 1.004, 1.0, 0.005)
        refused += slowed.slowed(one, one, lambda: None, one.stopped, Random(seed)) > 1.0
        calls.append(one.calls)
    assert refused == 0 and sum(calls) / len(calls) < 6 * 24
    assert found(1.05, spread=0.005, runs=40) >= 30, "as many as if nobody were let go"


def test_a_side_has_one_shipment() -> None:
    one, shipped = Beside(Random(3), 1.0, 1.0, 0.05), []
    slowed.slowed(one, one, lambda: shipped.append(1), one.stopped, Random(4))
    assert len(shipped) % 2 == 0 and len(shipped) <= 2 * slowed.LOOKS[-1] and one.calls >= 2 * len(shipped)
