"""A candidate is timed beside two processes of a baseline at once, and the quicker one stands for it."""

from __future__ import annotations

from random import Random

import pytest
from fake_programs import Fake, Machine

from warpwright.base import Measurement
from warpwright.targets.trust import doubles
from warpwright.timing import measure


def timed(seed: int, candidate: float, compiled: float, second: float, interval: float = 0.0, seconds: float = 3.0) -> Measurement:
    """Return a program of `candidate` seconds beside eager and two processes of torch.compile's program."""
    machine = Machine(Random(seed), spread=0.03)
    own = {"eager": Fake("eager", machine, 4e-3), "compile": Fake("compile", machine, compiled)}
    programs = doubles.with_doubles(own, {"compile": Fake("compile", machine, second)})
    found = measure.compare(
        Fake("new", machine, candidate), programs, lambda: None, seconds=seconds, floor_seconds=0.0, overhead_seconds=0.0,
        rng=Random(seed), clock=machine.clock, check_share=0.0, interval=interval, enough={"compile" + doubles.MARK: doubles.ENOUGH},
    )  # fmt: skip
    return doubles.folded(found)


@pytest.mark.parametrize(("first", "second"), [(1.1e-3, 1.0e-3), (1.0e-3, 1.1e-3)])
def test_the_quicker_process_is_what_a_small_speed_up_is_over(first: float, second: float) -> None:
    found = timed(3, 1.0e-3, first, second)
    assert found.verdict != "FASTER", "it is as fast as one of the two"
    assert found.best_baseline == "compile" and set(found.baselines) == {"eager", "compile"}
    assert found.baselines["compile"].median == pytest.approx(1.0e-3, rel=0.05) and found.speedup == pytest.approx(1.0, abs=0.05)
    assert doubles.beside_a_second_process(found) and found.conditions["speedup_over_compile"] == pytest.approx(1.0, abs=0.05)
    assert not any(doubles.MARK in str(key) + str(value) for key, value in found.conditions.items())


def test_a_small_speed_up_over_both_is_claimed_with_the_interval_asked_for() -> None:
    found = timed(4, 1.0e-3, 1.12e-3, 1.10e-3, interval=0.02, seconds=9.0)
    low, high = found.interval
    assert found.verdict == "FASTER" and low < 1.10 < high and high / low <= 1.02**2
    assert found.conditions["speedup_over_second_process"] == pytest.approx(1.10, abs=0.03)


def test_a_large_speed_up_is_timed_beside_one_process_from_the_first_looks_on() -> None:
    found = timed(0, 1.0e-3, 2.0e-3, 2.05e-3)
    assert found.verdict == "FASTER" and found.speedup == pytest.approx(2.0, rel=0.05)
    assert not doubles.beside_a_second_process(found), "of the second one too little was seen"
    assert found.baselines["compile"].median == pytest.approx(2.0e-3, rel=0.05)


def test_a_program_that_is_slower_is_timed_beside_one_process_from_then_on() -> None:
    found = timed(8, 2.0e-3, 1.0e-3, 1.01e-3, interval=0.01)
    assert found.verdict == "SLOWER" and found.speedup == pytest.approx(0.5, rel=0.03) and not doubles.beside_a_second_process(found)
    quicker = timed(8, 2.0e-3, 1.1e-3, 1.0e-3, interval=0.01)
    assert quicker.speedup == pytest.approx(0.5, rel=0.03), "the quicker process is never the one that is left out"


@pytest.mark.parametrize("first", [2.12e-3, 2.3e-3, 3.6e-3])
def test_a_second_process_that_is_quicker_stays_whatever_was_left_out_for_it(first: float) -> None:
    """The first one is timed no further: beside it the speed-up would be larger by what the two processes differ, and of few pairs."""
    found = timed(7, 1.0e-3, first, 2.0e-3)
    assert found.verdict == "FASTER" and found.speedup == pytest.approx(2.0, rel=0.05)
    assert doubles.beside_a_second_process(found) and found.conditions["speedup_over_compile"] == pytest.approx(2.0, rel=0.05)


def test_without_a_second_process_nothing_changes() -> None:
    machine = Machine(Random(6), spread=0.03)
    found = measure.compare(
        Fake("new", machine, 1e-3), {"eager": Fake("eager", machine, 2e-3)}, lambda: None, seconds=3.0, floor_seconds=0.0, overhead_seconds=0.0,
        rng=Random(6), clock=machine.clock, check_share=0.0,
    )  # fmt: skip
    assert doubles.folded(found) is found
