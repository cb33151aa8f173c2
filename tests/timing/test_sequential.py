"""Tests of the statistics of paired timings: exact error over all looks, coverage under ugly noise."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpwright.timing import sequential


def family_error(most: int) -> float:
    """Return the probability that at one look or another the interval fails to hold the median: the coin walk, followed exactly. The last look is at
    `most` pairs, as it is where the time is over."""
    alive, before, lost, look = [1.0], 0, 0.0, sequential.next_look(0)
    while before < most:
        look = min(look, most)
        alive = convolve(alive, [math.comb(look - before, k) / 2 ** (look - before) for k in range(look - before + 1)])
        rank = sequential.tail_rank(look, sequential.look_error(look) / 2)
        outside = [k for k in range(look + 1) if k < rank or k > look - rank]
        lost += sum(alive[k] for k in outside)
        for k in outside:
            alive[k] = 0.0
        before, look = look, sequential.next_look(look)
    return lost


def convolve(a: list[float], b: list[float]) -> list[float]:
    out = [0.0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        if x > 1e-18:
            for j, y in enumerate(b):
                out[i + j] += x * y
    return out


def test_all_looks_together_err_in_less_than_five_percent() -> None:
    assert 0.02 < family_error(600) < 0.05
    assert all(family_error(most) < 0.05 for most in (34, 52, 60, 79, 150))


def test_looks_are_growing() -> None:
    looks = [0]
    while looks[-1] < 1000:
        looks.append(sequential.next_look(looks[-1]))
    assert looks[1:6] == [10, 15, 23, 35, 53]


@pytest.mark.parametrize(("count", "error"), [(10, 0.0025), (40, 0.0025), (300, 0.01), (5000, 0.0025)])
def test_tail_rank_is_the_binomial_quantile(count: int, error: float) -> None:
    rank = sequential.tail_rank(count, error)
    below = sum(math.comb(count, k) for k in range(rank)) / 2**count
    assert below <= error < below + math.comb(count, rank) / 2**count


def test_too_few_values_give_no_bound() -> None:
    assert sequential.bound([1.0] * 5, 0.0025, upper=True) == math.inf
    assert sequential.bound([1.0] * 5, 0.0025, upper=False) == -math.inf
    assert sequential.median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80))
def test_interval_holds_the_sample_median(values: list[float]) -> None:
    low, high = sequential.median_interval(values)
    assert low <= sequential.median(values) <= high


@given(st.lists(st.integers(-1000, 1000), min_size=12, max_size=60), st.integers(-1000, 1000))
def test_interval_moves_with_the_sample(values: list[int], shift: int) -> None:
    low, high = sequential.median_interval(values)
    assert sequential.median_interval([value + shift for value in values]) == (low + shift, high + shift)


def test_an_outlier_moves_nothing() -> None:
    rng = Random(1)
    values = [rng.gauss(0, 1) for _ in range(60)]
    wild = [*values[:-1], 1e9 if values[-1] > 0 else -1e9]
    assert sequential.median_interval(wild) == sequential.median_interval(values)


def test_correlation_time() -> None:
    rng = Random(2)
    white = [rng.gauss(0, 1) for _ in range(2000)]
    assert sequential.correlation_time(white) < 1.3
    state, red = 0.0, []
    for value in white:
        state = 0.8 * state + value
        red.append(state)
    assert 3 < sequential.correlation_time(red) < 10  # sign correlation of AR(1) at 0.8: 2/pi asin(0.8^k), about 5.6 summed
    assert sequential.correlation_time([1.0] * 50) == 1.0


def coverage(draw, pairs: int, runs: int) -> int:
    """Return in how many runs the 99.5 % interval holds 0."""
    held = 0
    for _ in range(runs):
        values = draw(pairs)
        low = sequential.bound(values, sequential.LOOK_ERROR / 2, upper=False)
        high = sequential.bound(values, sequential.LOOK_ERROR / 2, upper=True)
        held += low <= 0 <= high
    return held


def test_coverage_with_outliers_and_memory() -> None:
    rng = Random(3)

    def draw(pairs: int) -> list[float]:
        state, values = 0.0, []
        for _ in range(pairs):
            state = 0.6 * state + rng.gauss(0, 0.03)
            values.append(state + (rng.choice([-1, 1]) * rng.expovariate(1.0) if rng.random() < 0.2 else 0.0))
        return values

    # 99.5 % is promised for independent pairs; with memory the estimate of the correlation time costs a little.
    assert coverage(draw, 100, 300) >= 288


def test_long_memory_is_seen() -> None:
    rng = Random(4)
    regimes = [rng.gauss(0.3 if i // 40 % 2 else -0.3, 0.5) for i in range(400)]
    assert sequential.correlation_time(regimes) > 3


def test_spread_is_the_standard_deviation_without_the_outliers() -> None:
    rng = Random(5)
    values = [rng.gauss(1, 0.2) for _ in range(2000)] + [50.0] * 40
    assert sequential.spread(values) == pytest.approx(0.2, rel=0.1)
