"""The measurement of a run: times, speed-ups and conditions, with a note where too little was seen."""

from __future__ import annotations

import math

from warpwright.base import Measurement, Scalar, Timing
from warpwright.timing.interleaved.block import CANDIDATE, Block, Look
from warpwright.timing.interleaved.looks import QUIET, floor_contradicted, margin, pairs_of, too_short
from warpwright.timing.sequential import correlation_time, median, median_interval


def _timing(block: Block, name: str) -> Timing:
    samples = block.net(name)
    low, high = median_interval(samples)
    return Timing(tuple(samples), median(samples), low, high)


def measurement(block: Block, look: Look, floor_seconds: float, confirmed: float | None) -> Measurement:
    """Return what a run found; `confirmed`: the speed-up of a second one, of two."""
    names = [name for name in block.programs if name != CANDIDATE]
    conditions: dict[str, Scalar] = {
        "cache": "flushed before every call",
        "pairs": len(block.raw[CANDIDATE]),
        "warm_up_rounds": block.warm_up,
        "checked_calls": block.checks,
        **({"disturbed_passes": block.disturbed} if block.sound is not None else {}),
        "overhead_seconds": block.overhead.empty,
        "overhead_in_a_call": block.overhead.of(median(block.raw[CANDIDATE])),
        "floor_seconds": floor_seconds,
        "seconds": block.clock() - block.began,
        "spread_of_pairs": round(look.spread, 4),
        "margin": round(margin(look.spread), 4),
        "correlation_time": round(correlation_time(pairs_of(block, look.best, block.overhead)), 3),
        "eligible": ",".join(sorted(block.eligible)),
    }
    for name in names:
        conditions[f"speedup_over_{name}"] = math.exp(median(pairs_of(block, name, block.overhead)))
    if confirmed is not None:
        conditions["speedup_in_second_block"] = confirmed
    missing = _missing(look)
    if missing:
        dependence = conditions["correlation_time"]
        seen = f"{conditions['pairs']} pairs of calls, which depended on one another ({dependence})"
        conditions["note"] = f"too little was seen for {missing}: {seen}"
    elif look.spread > QUIET:
        conditions["note"] = f"the machine was busy: pairs of calls differed by {look.spread:.0%}, so that {margin(look.spread):.2f}x was asked for"
    if too_short(block, look.best):
        conditions["note"] = "the call is hardly longer than an empty one; no verdict"
    if floor_seconds and floor_contradicted(block, floor_seconds):
        conditions["note"] = "a baseline was faster than the floor, so the floor was not used; measure the device's peaks again"
    low, high = _finite(block, look)
    timings = {name: _timing(block, name) for name in names}
    return Measurement(
        metric="time of one call",
        unit="s",
        better="lower",
        candidate=_timing(block, CANDIDATE),
        baselines=timings,
        best_baseline=look.best,
        speedup=look.speedup,
        interval=(low, high),
        verdict=look.verdict,
        conditions=conditions,
    )


def _missing(look: Look) -> str:
    """Say which bounds the interval lacks: without the lower one no program is FASTER, without the upper one it may be."""
    low, high = look.low <= 0, look.high == math.inf
    return "an interval" if low and high else "its lower bound" if low else "its upper bound, the largest ratio seen in its place" if high else ""


def _finite(block: Block, look: Look) -> tuple[float, float]:
    """Return the interval; where there were too few pairs for a bound, the smallest or largest ratio seen (`_missing`)."""
    pairs = pairs_of(block, look.best, block.overhead)
    low = look.low if look.low > 0 else math.exp(min(pairs))
    high = look.high if look.high < math.inf else math.exp(max(pairs))
    return min(low, look.speedup), max(high, look.speedup)
