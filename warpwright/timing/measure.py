"""Times a candidate beside its baselines, interleaved in one run, and says FASTER, SLOWER, SAME or UNSURE.

Pure logic over `Timeable`: processes, clocks and devices are behind it. docs/measurement.md gives the reasons.

    pass      every program once, in some order, all on the same fresh inputs and from the same core
    round     a pass in random order and a pass in the reverse of that order
    pair      the log-ratio of a baseline's and the candidate's time in one pass: slow drift and bursts of noise hit both
    look      an interval of the median of all pairs so far (`sequential.py`), which may end the run
    block     warm-up and rounds until a look decides or the time is over

The parts are in `interleaved/`; this is the run itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from warpwright.base import Comparison, Measurement
from warpwright.errors import UsageError
from warpwright.timing.interleaved.block import CANDIDATE, Block, Look, Timeable
from warpwright.timing.interleaved.looks import BAND, check_floor, judge, look_at
from warpwright.timing.interleaved.result import measurement
from warpwright.timing.interleaved.rounds import WrongDuringTiming, check, hidden_check, hopeless, retire, retire_hopeless, take_round, warm_up
from warpwright.timing.overhead import Overhead
from warpwright.timing.sequential import FIRST_LOOK, next_look

__all__ = ["BAND", "CANDIDATE", "FEWEST_HIDDEN", "PRECISE", "Timeable", "WrongDuringTiming", "compare", "expect_interval", "judge"]

PRECISE = 1.10
"""A FASTER program is timed on until the interval's ends are this close, so that its speed-up can be quoted ..."""

PRECISE_SHARE = 0.5
"""... but for no more than this share of the time."""

SPAN_SECONDS = 2.0
"""Calls have to be spread over this long (or a quarter of the time; half of it where an interval is asked for), since a busy neighbour stays for a
second or so and may hit one program ... Of recorded pairs of an H200 whose best baseline waits for the host, runs that ended as soon as 15 to 34
pairs had an interval of 2 % to either side missed their median in 8 of 63 (benchmarks/results/narrow_h200)."""

PLAIN = 1.5
"""... unless the interval lies beyond this."""

CONFIRM_ABOVE = 3.0
"""A larger speed-up is claimed only after a second block, with its own warm-up, has found it too."""

ALIKE = 2.0
"""... a speed-up that differs from the first by no more than this factor; the smaller one is claimed. It need not lie above CONFIRM_ABOVE itself: on
a busy GPU machine 3.0x was followed by 2.5x, each proven FASTER."""

FEWEST_HIDDEN = 5
"""Calls on hidden inputs in a run, be it ever so short: on a busy machine one of 22 passes had a single one, and a program that was right on the
task's own inputs alone by then got through."""

MOST_PAIRS = 5000

LEAST_INTERVAL = 0.001
"""Below the resolution of any timing of whole programs: two processes of one differ by more."""

LONGEST = 3
"""Times the seconds given: the time of a run is that of its calls, and where judging an output takes as long, the run goes on for it."""

UNSEEN = 10
"""Times the seconds given, in place of LONGEST before the first look where nobody waits: without one there is no verdict (seen with calls of 41 ms,
six programs and 3 s). Recurrent networks in turns of four calls of 105 ms had seen two pairs of 2.5x after three times 2 s, of which warming up had
taken most; a second run of 1 s beside three baselines of 48 ms needs nearly 6."""


def expect_interval(share: float) -> float:
    """Return the share of the speed-up that an interval may reach to either side (0: what the verdict needs). Raise UsageError for no such share."""
    if share and not LEAST_INTERVAL <= share < 1:
        raise UsageError(f"expected `interval` as a share of the speed-up, from {LEAST_INTERVAL:g} up to 1, saw {share:g}", "0.02 means 2 %")
    return share


def compare(
    candidate: Timeable,
    baselines: Mapping[str, Timeable],
    fresh_inputs: Callable[[], Any],
    *,
    seconds: float,
    floor_seconds: float,
    overhead_seconds: float | Overhead,
    rng: Random,
    check_share: float = 0.1,
    eligible: Collection[str] | None = None,
    hidden_inputs: Callable[[], Any] | None = None,
    worthwhile: float = 0.0,
    interval: float = 0.0,
    enough: Mapping[str, float] | None = None,
    sound: Callable[[], bool] | None = None,
    until: float = math.inf,
    kept: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> Measurement:
    """Time `candidate` beside `baselines` for about `seconds` at most, the checks of outputs not counted, and return the measurement.

    `hidden_inputs` makes inputs of other distributions: between the timed passes the candidate is called on them, untimed, and checked, so that
    a program cannot be right while it is verified and wrong from then on. `eligible` names the baselines that passed the verifier: the others
    are timed for the table but cannot be the best one. The time counts from the second pass on, because the first may compile; confirming a
    speed-up above 3x may add half as much again. `worthwhile`: the run ends early once the speed-up is surely below this. `interval`: the share of
    the speed-up that its interval may reach to either side before the run ends, whatever the verdict, if there is time; 0: what the verdict needs.
    `enough`: baselines that are left out, as if they had not been there, once the candidate is surely so many times as fast as they are, or surely
    slower than they are (by BAND), and another one that is timed on is as quick as they (by BAND).
    `sound`: asked after every timed call, and where it says no the pass is left out, at most as many as are kept.
    `until`: where the clock stands when it ends at the latest, checks and all, but for the pairs of a first look and the checks at the end.
    `kept`: a baseline that is timed to the end however slow it seems: one that was the quickest without the candidate, which may slow it down for as
    long as it takes to have it dropped.
    Raises BelowFloor, WrongDuringTiming, and whatever a worker raises.
    """
    chosen = frozenset(baselines if eligible is None else eligible) & frozenset(baselines)
    if not chosen:
        raise UsageError(f"expected at least one eligible baseline, saw none of {sorted(baselines)}", "pass eager, which is the original")
    programs = {CANDIDATE: candidate, **baselines}
    overhead = overhead_seconds if isinstance(overhead_seconds, Overhead) else Overhead.constant(overhead_seconds)

    def block(time_limit: float, fewest_hidden: int, without: Collection[str] = ()) -> tuple[Block, Look]:
        taking_part = {name: program for name, program in programs.items() if name not in without}
        current = Block(
            taking_part, chosen.difference(without), fresh_inputs, hidden_inputs, overhead, rng, check_share, worthwhile, interval, clock,
            fewest_hidden, enough or {}, sound, until, kept,
        )  # fmt: skip
        return current, _run_block(current, time_limit, floor_seconds)

    first, look = block(seconds, FEWEST_HIDDEN)
    confirmed: float | None = None
    if look.verdict == "FASTER" and look.speedup > CONFIRM_ABOVE:
        _, second = block(seconds / 2, FEWEST_HIDDEN - first.hidden_checks, hopeless(first))
        look, confirmed = _agree(look, second), second.speedup
    return measurement(first, look, floor_seconds, confirmed)


def _agree(first: Look, second: Look) -> Look:
    """Return the more modest of two looks at a large speed-up, with an interval that holds both."""
    close = max(first.speedup, second.speedup) <= ALIKE * min(first.speedup, second.speedup)
    verdict: Comparison = "FASTER" if second.verdict == "FASTER" and close else "UNSURE"
    modest = min(first, second, key=lambda look: look.speedup)
    return replace(modest, low=min(first.low, second.low), high=max(first.high, second.high), verdict=verdict)


def _run_block(block: Block, seconds: float, floor_seconds: float) -> Look:
    """Warm up, then take rounds until a look decides or the time is over."""
    warm_up(block, seconds)
    next_at = next_look(0)
    while True:
        take_round(block)
        pairs = len(block.raw[CANDIDATE])
        taken = block.clock() - block.began
        spent = (taken - block.check_seconds >= seconds or block.clock() >= block.until) and pairs >= FIRST_LOOK
        over = spent or pairs >= MOST_PAIRS or taken >= _longest(block, pairs) * seconds
        if pairs < next_at and not over:
            retire_hopeless(block)
            continue
        next_at = next_look(pairs)
        look = look_at(block)
        check_floor(block, floor_seconds)
        if over or _not_worthwhile(look, block.worthwhile, taken, seconds) or _decided(look, taken, seconds, block.interval):
            if block.check_share > 0:  # however the draws fell: a program that counts its calls has had most of them by now
                check(block)
                hidden_check(block)
                while block.hidden_inputs is not None and block.hidden_checks < block.fewest_hidden:
                    hidden_check(block)
            return look
        retire(block)


def _longest(block: Block, pairs: int) -> float:
    """Return how many times its seconds a run may take."""
    return UNSEEN if pairs < FIRST_LOOK and block.clock() < block.until else LONGEST


def _early(spent: float, seconds: float) -> bool:
    """Whether so little of a run is over that a neighbour may have hit one program all the while."""
    return spent < min(SPAN_SECONDS, seconds / 4)


def _not_worthwhile(look: Look, worthwhile: float, spent: float, seconds: float) -> bool:
    """Whether the speed-up is surely too small to go on."""
    return look.high < worthwhile and (not _early(spent, seconds) or look.high < 1 / PLAIN)


def _decided(look: Look, spent: float, seconds: float, interval: float = 0.0) -> bool:
    """Whether a look ends the run after `spent` of its `seconds`; with an `interval` only where the ends are as close as that."""
    if look.verdict == "UNSURE" or (_early(spent, seconds) and look.high >= 1 / PLAIN and look.low <= PLAIN):
        return False
    if interval:
        spread_out = spent >= min(SPAN_SECONDS, seconds / 2)
        return spread_out and look.high <= (1 + interval) ** 2 * look.low  # 0 while there are too few pairs beside one of the baselines
    return look.verdict != "FASTER" or look.high / look.low <= PRECISE or spent >= PRECISE_SHARE * seconds
