"""Statistics of paired timings: an interval of the median that stays valid although it is looked at again and again.

The interval is that of the sign test: between two order statistics of the sample. It supposes nothing of the noise but that a pair is as
likely above the true median as below it, so neither outliers nor a heavy tail can move it. Looking at it after 10, 15, 23 ... pairs and
stopping when one likes the answer would raise the error; `look_error` is set so that over all looks together an interval fails to hold the
true median in less than 5 % of runs. Most of that falls to the first five looks, where most runs end: at 23 to 53 pairs intervals are 13 to 20 %
narrower than with the same error at each, from 80 on 5 to 8 % wider. (The count of pairs above the median is a coin-flipping walk, whatever the
noise, so this probability is computed exactly: tests/timing/test_sequential.py does so, and finds 2.8 % up to 53 pairs and 4.5 % up to 5,000.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

LOOK_ERROR = 0.005
"""Two-sided error of one look, where every look has the same."""

EARLY_PAIRS, EARLY_ERROR, LATE_ERROR = 53, 0.013, 0.003
"""Two-sided errors of looks up to so many pairs, and of later ones."""

FIRST_LOOK = 10
"""Pairs at the first look: below 9, even pairs that all agree could not reach LOOK_ERROR."""

LOOK_GROWTH = 1.5

STRETCHES = 10

CHANCE = 1.9
"""Ratio that the variance of ten means exceeds by chance in 5 % of runs."""


def look_error(pairs: int) -> float:
    """Return the two-sided error of a look at so many pairs."""
    return EARLY_ERROR if pairs <= EARLY_PAIRS else LATE_ERROR


def next_look(pairs: int) -> int:
    """Return the number of pairs at which to look next, after a look at `pairs` (0: none yet)."""
    look = FIRST_LOOK
    while look <= pairs:
        look = math.ceil(look * LOOK_GROWTH)
    return look


@cache
def tail_rank(count: int, error: float) -> int:
    """Return the largest k for which P(fewer than k heads in `count` fair throws) <= `error`; 0 when not even P(no head) is."""
    total, rank = 0.0, 0
    while rank <= count // 2:
        total += math.exp(math.lgamma(count + 1) - math.lgamma(rank + 1) - math.lgamma(count - rank + 1) - count * math.log(2))
        if total > error:
            break
        rank += 1
    return rank


def correlation_time(values: Sequence[float]) -> float:
    """Return by how much the dependence of successive values shrinks their effective number: 1.0 for independent ones.

    Measured on the signs about the median, so that an outlier counts once. Two estimates, the larger counts: the sum over lags sees short
    memory (a burst of noise), the scatter of ten stretches of the run sees long memory (a program that sits on the busier core for seconds).
    """
    middle = median(values)
    signs = [(value > middle) - (value < middle) for value in values]
    return max(_short_memory(signs), _long_memory(signs))


def _short_memory(signs: Sequence[int]) -> float:
    """Return 1 + 2 x the correlations of the first lags that stand out of the noise."""
    count, power, total = len(signs), sum(sign * sign for sign in signs), 1.0
    for lag in range(1, count // 5):
        correlation = sum(a * b for a, b in zip(signs, signs[lag:], strict=False)) / power if power else 0.0
        if correlation < 2 / math.sqrt(count):
            break
        total += 2 * correlation
    return total


def _long_memory(signs: Sequence[int]) -> float:
    """Return the variance of the means of STRETCHES stretches over what it is for independent signs, or 1 if that may be chance."""
    length = len(signs) // STRETCHES
    if length < 4:
        return 1.0
    means = [sum(signs[i * length : (i + 1) * length]) / length for i in range(STRETCHES)]
    middle = sum(means) / STRETCHES
    ratio = length * sum((mean - middle) ** 2 for mean in means) / (STRETCHES - 1)
    return ratio if ratio > CHANCE else 1.0


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation that normal values with the same median distance from their median would have."""
    middle = median(values)
    return 1.4826 * median([abs(value - middle) for value in values])


def median(values: Sequence[float]) -> float:
    """Return the middle value."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def bound(values: Sequence[float], error: float, upper: bool) -> float:
    """Return a one-sided bound of the median of `values` that fails with probability `error`; infinite when they are too few."""
    count = len(values)
    rank = tail_rank(count, error)
    if rank == 0:
        return math.inf if upper else -math.inf
    # A walk with memory strays further, by the root of its correlation time, than the coin flips that `rank` is for.
    rank = math.floor(count / 2 - (count / 2 - rank) * math.sqrt(correlation_time(values)) + 1e-9)
    if rank <= 0:
        return math.inf if upper else -math.inf
    ordered = sorted(values)
    return ordered[count - rank] if upper else ordered[rank - 1]


def median_interval(values: Sequence[float], error: float = 0.05) -> tuple[float, float]:
    """Return the median's interval at one look, cut to the smallest and largest value when they are too few for it."""
    low, high = bound(values, error / 2, upper=False), bound(values, error / 2, upper=True)
    return max(low, min(values)), min(high, max(values))
