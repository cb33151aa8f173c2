"""What leaving passes out on slow cores does to the interval: programs of a known ratio on cores that change between quick and slow."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from warpwright.timing import measure

SLOW, LASTS = 1.4, 0.5
"""How much longer calls take on a slow core, and for how many seconds it stays so."""


class Core:
    """Slow half of the time, as it comes."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.now, self.until, self.slow = rng, 0.0, 0.0, False

    def go_on(self, seconds: float) -> None:
        self.now += seconds
        while self.now > self.until:
            self.until += self.rng.expovariate(1 / LASTS)
            self.slow = self.rng.random() < 0.5


class On:
    """A program on that core."""

    def __init__(self, core: Core, seconds: float) -> None:
        self.name, self.core, self.seconds = "", core, seconds

    def prepare(self, inputs: Any, place: float) -> None:
        self.core.go_on(8e-3)

    def go(self) -> float:
        rng, slow = self.core.rng, SLOW if self.core.slow else 1.0
        seconds = self.seconds * slow * math.exp(rng.gauss(0.0, 0.05)) * (2.0 if rng.random() < 0.03 else 1.0)
        self.core.go_on(seconds)
        return seconds

    def check(self) -> None:
        return None


@pytest.mark.parametrize("ratio", [1.0, 1.1])
def test_the_interval_holds_the_ratio_where_slow_passes_are_left_out(ratio: float) -> None:
    missed, verdicts, left_out = 0, [], 0
    for seed in range(20):
        core = Core(Random(seed))
        beside = {"one": On(core, 1e-3), "other": On(core, 1.02e-3)}
        found = measure.compare(
            On(core, 1e-3 / ratio), beside, lambda: None, seconds=2.5, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(seed), check_share=0.0,
            sound=lambda core=core: not core.slow, clock=lambda core=core: core.now,
        )  # fmt: skip
        low, high = found.interval
        missed += not low <= ratio <= high
        left_out += int(found.conditions["disturbed_passes"])
        verdicts.append(found.verdict)
    assert missed <= 2 and left_out > 60
    assert (verdicts.count("FASTER") > 10) if ratio > 1.05 else (verdicts.count("FASTER") + verdicts.count("SLOWER") <= 1)
