"""The device regime on simulated devices: memory that lies well or badly, drift, noise; and on the host, for real."""

from __future__ import annotations

import math
from random import Random

import pytest

from warpwright.timing import device


class Simulated:
    """A device on which a launch takes the microseconds that it says; whoever captures gets a place in memory that is better or worse."""

    def __init__(self, seed: int, placement: float = 0.006, noise: float = 0.004, drift: float = 0.05) -> None:
        self.rng = Random(seed)
        self.placement, self.noise, self.drift = placement, noise, drift
        self.time = 0.0

    def capture(self, launch, calls, rng):
        place = math.exp(self.rng.gauss(0, self.placement))
        self.time += 5e-3
        return calls * launch(0) * place

    def timed(self, spans):
        taken = []
        for span in spans:
            slow = 1 + self.drift * math.sin(self.time * 7)
            seconds = span * slow * math.exp(self.rng.gauss(0, self.noise)) * (3 if self.rng.random() < 0.01 else 1)
            taken.append(round(seconds * 2e6) / 2e6)  # an event's resolution
            self.time += seconds
        return taken


def ratio(seed: int, first: float, second: float, **options: float) -> device.Ratio:
    clock = Simulated(seed, **options)
    return device.compare(
        lambda epoch: lambda call: first, lambda epoch: lambda call: second, clock, rng=Random(seed), now=lambda: clock.time
    )


def test_two_copies_of_a_kernel_are_the_same_within_half_a_per_cent() -> None:
    verdicts = [ratio(seed, 5e-6, 5e-6).verdict for seed in range(100)]
    assert verdicts.count("SAME") >= 95 and not {"FASTER", "SLOWER"} & set(verdicts)


@pytest.mark.parametrize(("second", "verdict"), [(5.15e-6, "FASTER"), (4.85e-6, "SLOWER")])
def test_three_per_cent_are_seen(second: float, verdict: str) -> None:
    found = [ratio(seed, 5e-6, second) for seed in range(20)]
    assert [one.verdict for one in found] == [verdict] * 20
    assert all(one.interval[0] <= one.speedup <= one.interval[1] and abs(one.speedup / (second / 5e-6) - 1) < 0.015 for one in found)


def test_the_interval_holds_the_truth() -> None:
    held = [one.interval[0] <= 1.01 <= one.interval[1] for one in (ratio(seed, 1e-5, 1.01e-5, placement=0.01) for seed in range(100))]
    assert held.count(True) >= 95


def test_memory_that_differs_for_as_long_as_a_program_lives_makes_nobody_faster() -> None:
    assert all(ratio(seed, 5e-6, 5e-6, placement=0.03).verdict in ("UNSURE", "SAME") for seed in range(40))


def test_a_span_holds_as_many_launches_as_fit() -> None:
    assert ratio(0, 5e-6, 5e-6).calls == pytest.approx(100, rel=0.2)
    assert ratio(0, 1e-3, 1e-3).calls == device.FEWEST and ratio(0, 1e-8, 1e-8).calls == device.MOST


def test_a_real_program_on_the_host() -> None:
    def work(size: int) -> device.Program:
        return lambda epoch: lambda call: sum(range(size))

    found = device.compare(work(100), work(5000), device.HostClock(), seconds=1.0)
    assert found.speedup > 1.5 and found.verdict in ("FASTER", "UNSURE") and len(found.epochs) >= 10
