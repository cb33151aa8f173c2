"""What the pairs of a run say: the interval of the speed-up, the verdict that it allows, and whether a time is believable."""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpwright.base import Comparison
from warpwright.errors import BelowFloor
from warpwright.timing.interleaved.block import CANDIDATE, Block, Look
from warpwright.timing.overhead import Overhead
from warpwright.timing.sequential import FIRST_LOOK, LOOK_ERROR, bound, look_error, median, spread

BAND = 1.02
"""SAME: the interval lies within 1/BAND .. BAND. FASTER: above BAND; SLOWER: below 1/BAND. Two processes of one program differ by about 0.3 % on
a quiet machine and by 1 to 3 % on a busy one, for as long as they live, so that a smaller difference is no claim."""

QUIET = 0.12
"""Spread of the pairs' log-ratios up to which a machine counts as quiet; 0.06 to 0.10 was seen for calls of 1.5 ms while little else ran."""

BUSY_MARGIN = 0.5
"""What the spread beyond QUIET adds to the margin of FASTER and SLOWER, in log-ratio. On a busy machine (five to ten programs on two cores)
the same program in two processes differed, for as long as they lived, by up to half the spread of the pairs: no count of pairs helps then.
Seen before the programs of a pass began on one core (`workers/placement.py`); how much is left was not measured, and the margin is a reserve."""

OVERHEAD_DOUBT = 0.10
"""The overhead of an empty call is taken to be known to this share of itself; intervals are widened by it."""


def pairs_of(block: Block, name: str, overhead: Overhead) -> list[float]:
    """Return log(baseline / candidate) of every pass in which both were called."""
    times = zip(block.net(name, overhead), block.net(CANDIDATE, overhead), strict=False)
    return [math.log(baseline / candidate) for baseline, candidate in times]


def pair_bound(block: Block, name: str, error: float, upper: bool) -> float:
    """Return a bound of the speed-up against one baseline, the worst over what the overhead may really be."""
    overheads = {block.overhead.scaled(factor) for factor in (1 - OVERHEAD_DOUBT, 1, 1 + OVERHEAD_DOUBT)}
    bounds = [bound(pairs_of(block, name, overhead), error, upper) for overhead in overheads]
    return _exp(max(bounds) if upper else min(bounds))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def look_at(block: Block) -> Look:
    """Return the speed-up over the best eligible baseline, which is the smallest of all, with its interval.

    Picking the best after seeing the times would favour it by luck; hence each baseline has its own interval, and the smallest of the
    true speed-ups lies above the smallest lower bound, and below all upper bounds once their error is shared out among them.
    """
    error = look_error(len(block.raw[CANDIDATE])) / 2
    contenders = [name for name in sorted(block.eligible) if name in block.active or len(block.raw[name]) >= FIRST_LOOK]  # not the hopeless
    speedups = {name: math.exp(median(pairs_of(block, name, block.overhead))) for name in contenders}
    best = min(speedups, key=lambda name: speedups[name])
    low = min(pair_bound(block, name, error, upper=False) for name in contenders)
    high = min(pair_bound(block, name, error / len(contenders), upper=True) for name in contenders)
    pairs = pairs_of(block, best, block.overhead)
    noise = spread(pairs)
    verdict = judge(low, high, margin(noise))
    if too_short(block, best) or (verdict in ("FASTER", "SLOWER") and not _steady(pairs)):
        verdict = "UNSURE"
    return Look(best, speedups[best], low, high, noise, verdict)


def _steady(pairs: Sequence[float]) -> bool:
    """Whether every third of the run shows the difference, or at least a third of it: a disturbance of one program would end some time."""
    whole, third = median(pairs), len(pairs) // 3
    return all(median(part) / whole > 1 / 3 for part in (pairs[:third], pairs[third:-third], pairs[-third:])) if third and whole else True


def margin(noise: float) -> float:
    """Return the speed-up that an interval has to lie above for FASTER, when the pairs have a spread of `noise`."""
    return BAND * math.exp(BUSY_MARGIN * max(0.0, noise - QUIET))


def judge(low: float, high: float, least: float = BAND) -> Comparison:
    """Return the verdict that an interval of the speed-up allows."""
    if low >= 1 / BAND and high <= BAND:
        return "SAME"
    if low > least:
        return "FASTER"
    if high < 1 / least:
        return "SLOWER"
    return "UNSURE"


def too_short(block: Block, best: str) -> bool:
    """Whether either call is hardly longer than an empty one, so that what is left after subtraction is mostly doubt."""
    least = block.overhead.empty * (1 + OVERHEAD_DOUBT) * 1.05
    return min(median(block.raw[name]) for name in (CANDIDATE, best)) < least


def check_floor(block: Block, floor_seconds: float) -> None:
    """Raise BelowFloor when even the upper bound of the candidate's time is below the floor, and no trusted program was as fast."""
    high = bound(block.net(CANDIDATE, block.overhead.scaled(1 - OVERHEAD_DOUBT)), LOOK_ERROR / 2, upper=True)
    if high < floor_seconds and not floor_contradicted(block, floor_seconds):
        raise BelowFloor(median(block.net(CANDIDATE)), floor_seconds)


def floor_contradicted(block: Block, floor_seconds: float) -> bool:
    """Whether a baseline, which is trusted, was faster than the floor: then the floor is wrong."""
    return any(median(block.net(name)) < floor_seconds for name in block.raw if name != CANDIDATE and block.raw[name])
