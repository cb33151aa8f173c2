"""How long a candidate is timed: a race against what it must beat. Who is surely behind drops out, whoever may win is timed on.

A pair (ABBA, original and candidate) says the speed-up with a spread that the original shows against itself. So the best of a few pairs that lies
more than three such spreads behind is behind: most candidates of a search drop out after one pair, 0.4 ms of the device.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

SURE = 3.0
"""Spreads of one pair by which the best of a few pairs may flatter or wrong a candidate."""

FEW = 6
"""Pairs from which on their own spread says how far the median may be off."""

STAGES_US = (400.0, 400.0, 800.0, 1600.0, 4000.0)
"""How long pairs are timed in each stage: of every candidate, then of those that are still in the race; in the last, of what may be the best."""

LAST_PAIRS = 4
"""Of the last stage at least: what is timed for longer varies less."""

LEAST_SPREAD = 1e-4
"""Log-ratio: no pair is taken to be surer than this."""


def rounds(us: float) -> tuple[int, ...]:
    """Return the pairs of each stage for launches of `us` microseconds between two events, of which a pair has four."""
    *stages, last = (round(stage / (4 * us)) for stage in STAGES_US)
    pairs, timed = [max(1, stages[0])], stages[0]
    for stage in stages[1:]:
        timed += stage
        pairs.append(max(0, timed - sum(pairs)))
    return (*(count for count in pairs if count), max(LAST_PAIRS, last))


def spread(ratios: Sequence[float]) -> float:
    """Return the spread of one pair as a log-ratio, from pairs of the original with itself."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.median(logs)
    return max(LEAST_SPREAD, 1.4826 * statistics.median(abs(value - middle) for value in logs))


def upper(ratios: Sequence[float], spread: float) -> float:
    """Return what the median of many more ratios may be at most: two standard errors above, or three spreads above the greatest of a few."""
    if len(ratios) < FEW:
        return max(ratios) * math.exp(SURE * spread / len(ratios))
    middle = statistics.median(ratios)
    own = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return middle + 2.0 * 1.2533 * own / math.sqrt(len(ratios))


def is_out(ratios: Sequence[float], worth: float, spread: float) -> bool:
    """Is a candidate with these speed-ups surely behind `worth`?"""
    return upper(ratios, spread) < worth


def widened(interval: tuple[float, float, float], pairs: int, spread: float) -> tuple[float, float, float]:
    """Return the interval of a speed-up as wide at least as so few pairs are unsure: two standard errors of pairs of that spread."""
    middle, low, high = interval
    off = math.exp(2.0 * spread / math.sqrt(pairs)) if pairs < FEW else 1.0
    return middle, min(low, middle / off), max(high, middle * off)
