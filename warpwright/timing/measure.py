"""Times a candidate beside its baselines, interleaved in one run, and says FASTER, SLOWER, SAME or UNSURE.

Pure logic over `Timeable`: processes, clocks and devices are behind it. docs/measurement.md gives the reasons.

    pass      every program once, in some order, all on the same fresh inputs and from the same core
    round     a pass in random order and a pass in the reverse of that order
    pair      the log-ratio of a baseline's and the candidate's time in one pass: slow drift and bursts of noise hit both
    look      an interval of the median of all pairs so far (`sequential.py`), which may end the run
    block     warm-up and rounds until a look decides or the time is over
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol

from warpwright.base import Comparison, Measurement, Scalar, Timing, Verdict
from warpwright.errors import BelowFloor, UsageError, WarpwrightError
from warpwright.timing.overhead import Overhead
from warpwright.timing.sequential import FIRST_LOOK, LOOK_ERROR, bound, correlation_time, look_error, median, median_interval, next_look, spread

BAND = 1.02
"""SAME: the interval lies within 1/BAND .. BAND. FASTER: above BAND; SLOWER: below 1/BAND. Two processes of one program differ by about 0.3 % on
a quiet machine and by 1 to 3 % on a busy one, for as long as they live, so that a smaller difference is no claim."""

QUIET = 0.12
"""Spread of the pairs' log-ratios up to which a machine counts as quiet; 0.06 to 0.10 was seen for calls of 1.5 ms while little else ran."""

BUSY_MARGIN = 0.5
"""What the spread beyond QUIET adds to the margin of FASTER and SLOWER, in log-ratio. On a busy machine (five to ten programs on two cores)
the same program in two processes differed, for as long as they lived, by up to half the spread of the pairs: no count of pairs helps then.
Seen before the programs of a pass began on one core (`workers/placement.py`); how much is left was not measured, and the margin is a reserve."""

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

OVERHEAD_DOUBT = 0.10
"""The overhead of an empty call is taken to be known to this share of itself; intervals are widened by it."""

WARM_UP_SHARE = 0.15
"""Share of the time that warm-up may take before the programs count as stationary anyway."""

CHECK_TIME_SHARE = 0.3
"""Checks are left out while they have taken more than this share of the time (after the first three)."""

FEWEST_HIDDEN = 5
"""Calls on hidden inputs in a run, be it ever so short: on a busy machine one of 22 passes had a single one, and a program that was right on the
task's own inputs alone by then got through."""

MOST_PAIRS = 5000

LEAST_INTERVAL = 0.001
"""Below the resolution of any timing of whole programs: two processes of one differ by more."""

CANDIDATE = "\0candidate"
"""The candidate's name among the programs of a block; no baseline can have it."""


class Timeable(Protocol):
    """A program that can be called on given inputs and timed from outside."""

    name: str

    def prepare(self, inputs: Any, place: float, /) -> None:
        """Take `inputs` into place, flush the cache and go to the core at `place` (`placement.core`); not timed."""
        ...

    def go(self) -> float:
        """Call once and return the seconds that it took, by the parent's clock, overhead of the call included."""
        ...

    def check(self) -> Verdict | None:
        """Return the verdict on the outputs of the last call; None if this program's outputs are not checked."""
        ...


class WrongDuringTiming(WarpwrightError):
    """A timed call's outputs did not pass."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"the outputs of a timed call did not pass: {verdict.reason}", "a program must be right whenever it is timed")
        self.verdict = verdict


LONGEST = 3
"""Times the seconds given: the time of a run is that of its calls, and where judging an output takes as long, the run goes on for it. So it does
where the time is over before the first look: without one there is no verdict (seen with calls of 41 ms, six programs and 3 s)."""

HOPELESS = 1.5
"""Over three passes and more."""


@dataclass(frozen=True)
class _Look:
    """What the pairs so far say of the candidate against the best eligible baseline."""

    best: str
    speedup: float
    low: float
    high: float
    spread: float
    """Of the log-ratios of the pairs."""
    verdict: Comparison


@dataclass
class _Block:
    """One interleaved run: the programs, and the raw seconds of their calls."""

    programs: dict[str, Timeable]
    """The candidate is CANDIDATE."""
    eligible: frozenset[str]
    fresh_inputs: Callable[[], Any]
    hidden_inputs: Callable[[], Any] | None
    overhead: Overhead
    rng: Random
    check_share: float
    worthwhile: float
    interval: float
    clock: Callable[[], float]
    fewest_hidden: int
    """Calls on hidden inputs before it ends, however the draws fell; those of an earlier block count."""
    enough: Mapping[str, float] = field(default_factory=dict)
    """Baselines that are left out once the speed-up over them is surely above this, and over another one no larger; or the program is surely slower
    than both."""
    sound: Callable[[], bool] | None = None
    """Asked when a program was timed: whether nothing that has to do with no program disturbed it."""
    until: float = math.inf
    """No round begins after this, by the clock, once there are pairs for an interval."""
    kept: str = ""
    """A baseline that is timed to the end, however slow it seems."""
    disturbed: int = 0
    """Passes that were left out for that."""
    raw: dict[str, list[float]] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)
    warm_up: int = 0
    checks: int = 0
    hidden_checks: int = 0
    check_seconds: float = 0.0
    began: float = 0.0

    def net(self, name: str, overhead: Overhead | None = None) -> list[float]:
        """Return the seconds of a program's calls with the overhead subtracted; at least 2 % of a call is left."""
        taken = self.overhead if overhead is None else overhead
        return [max(seconds - taken.of(seconds), 0.02 * seconds) for seconds in self.raw[name]]


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

    def block(time_limit: float, fewest_hidden: int) -> tuple[_Block, _Look]:
        current = _Block(
            programs, chosen, fresh_inputs, hidden_inputs, overhead, rng, check_share, worthwhile, interval, clock, fewest_hidden, enough or {},
            sound, until, kept,
        )  # fmt: skip
        return current, _run_block(current, time_limit, floor_seconds)

    first, look = block(seconds, FEWEST_HIDDEN)
    confirmed: float | None = None
    if look.verdict == "FASTER" and look.speedup > CONFIRM_ABOVE:
        _, second = block(seconds / 2, FEWEST_HIDDEN - first.hidden_checks)
        look, confirmed = _agree(look, second), second.speedup
    return _measurement(first, look, floor_seconds, confirmed)


def _agree(first: _Look, second: _Look) -> _Look:
    """Return the more modest of two looks at a large speed-up, with an interval that holds both."""
    close = max(first.speedup, second.speedup) <= ALIKE * min(first.speedup, second.speedup)
    verdict: Comparison = "FASTER" if second.verdict == "FASTER" and close else "UNSURE"
    modest = min(first, second, key=lambda look: look.speedup)
    return replace(modest, low=min(first.low, second.low), high=max(first.high, second.high), verdict=verdict)


def _run_block(block: _Block, seconds: float, floor_seconds: float) -> _Look:
    """Warm up, then take rounds until a look decides or the time is over."""
    _warm_up(block, seconds)
    next_at = next_look(0)
    while True:
        _round(block)
        pairs = len(block.raw[CANDIDATE])
        taken = block.clock() - block.began
        spent = (taken - block.check_seconds >= seconds or block.clock() >= block.until) and pairs >= FIRST_LOOK
        over = spent or taken >= LONGEST * seconds or pairs >= MOST_PAIRS
        if pairs < next_at and not over:
            _retire_hopeless(block)
            continue
        next_at = next_look(pairs)
        look = _look(block)
        _check_floor(block, floor_seconds)
        if over or _not_worthwhile(look, block.worthwhile, taken, seconds) or _decided(look, taken, seconds, block.interval):
            if block.check_share > 0:  # however the draws fell: a program that counts its calls has had most of them by now
                _check(block)
                _hidden_check(block)
                while block.hidden_inputs is not None and block.hidden_checks < block.fewest_hidden:
                    _hidden_check(block)
            return look
        _retire(block)


def _early(spent: float, seconds: float) -> bool:
    """Whether so little of a run is over that a neighbour may have hit one program all the while."""
    return spent < min(SPAN_SECONDS, seconds / 4)


def _not_worthwhile(look: _Look, worthwhile: float, spent: float, seconds: float) -> bool:
    """Whether the speed-up is surely too small to go on."""
    return look.high < worthwhile and (not _early(spent, seconds) or look.high < 1 / PLAIN)


def _decided(look: _Look, spent: float, seconds: float, interval: float = 0.0) -> bool:
    """Whether a look ends the run after `spent` of its `seconds`; with an `interval` only where the ends are as close as that."""
    if look.verdict == "UNSURE" or (_early(spent, seconds) and look.high >= 1 / PLAIN and look.low <= PLAIN):
        return False
    if interval:
        spread_out = spent >= min(SPAN_SECONDS, seconds / 2)
        return spread_out and look.high <= (1 + interval) ** 2 * look.low  # 0 while there are too few pairs beside one of the baselines
    return look.verdict != "FASTER" or look.high / look.low <= PRECISE or spent >= PRECISE_SHARE * seconds


# --- taking rounds -----------------------------------------------------------------------------------------------------------------


def _warm_up(block: _Block, seconds: float) -> None:
    """Take rounds, and forget them, until no program gets faster any more (clocks, caches, allocators, compilers)."""
    block.active = list(block.programs)
    block.raw = {name: [] for name in block.programs}
    _pass(block, block.active)
    block.began, block.check_seconds = block.clock(), 0.0
    block.raw = {name: [] for name in block.programs}
    sound, block.sound = block.sound, None
    while True:
        _round(block)
        block.warm_up += 1
        if block.warm_up >= 2 and (_stationary(block) or block.clock() - block.began > WARM_UP_SHARE * seconds):
            break
    block.raw, block.sound = {name: [] for name in block.programs}, sound


def _stationary(block: _Block) -> bool:
    """Whether no program's last round was more than 10 % faster than the round before."""
    return all(min(times[-2:]) > 0.9 * min(times[-4:-2]) for times in block.raw.values())


def _round(block: _Block) -> None:
    order = block.rng.sample(block.active, len(block.active))
    _pass(block, order)
    _pass(block, order[::-1])
    if block.began and block.rng.random() < block.check_share and _time_for_checks(block, block.hidden_checks):
        _hidden_check(block)


def _pass(block: _Block, order: Sequence[str]) -> None:
    """Call every program of `order` once on the same fresh inputs and from the same core; check the candidate's outputs now and then.

    Where something disturbs it, it ends at once, and counts for none of them; but for one in which the candidate took far longer than it may."""
    inputs, place, kept = block.fresh_inputs(), block.rng.random(), len(block.raw[CANDIDATE])
    for number, name in enumerate(order):
        program = block.programs[name]
        program.prepare(inputs, place)
        block.raw[name].append(program.go())
        sound = block.sound is None or not block.began or block.sound()
        if name == CANDIDATE and _to_be_checked(block):
            _check(block)
        if not sound and block.disturbed < kept and not _exposed(block.raw[CANDIDATE], kept):
            block.disturbed += 1
            for called in order[: number + 1]:
                block.raw[called].pop()
            return


EXPOSED = 5e-3
"""Seconds. A call that is so much longer than the program's quickest one is disturbed more often for its length alone."""


def _exposed(times: Sequence[float], kept: int) -> bool:
    """Whether the program's call in this pass, after those of the passes that are kept, was so long that leaving it out would hide what it took."""
    return len(times) > kept and times[-1] > min(times) + EXPOSED


def _to_be_checked(block: _Block) -> bool:
    """Decide, after the call and out of the program's sight, whether to look at its outputs."""
    return block.rng.random() < block.check_share and _time_for_checks(block, block.checks)


def _time_for_checks(block: _Block, done: int) -> bool:
    spent = block.clock() - block.began if block.began else math.inf
    return done < 3 or block.check_seconds < CHECK_TIME_SHARE * spent


def _hidden_check(block: _Block) -> None:
    """Call the candidate on inputs of a hidden distribution, as if it were timed, and check the answer."""
    if block.hidden_inputs is None:
        return
    began = block.clock()
    program = block.programs[CANDIDATE]
    program.prepare(block.hidden_inputs(), block.rng.random())
    program.go()
    block.check_seconds += block.clock() - began
    block.hidden_checks += 1
    _check(block)


def _check(block: _Block) -> None:
    began = block.clock()
    verdict = block.programs[CANDIDATE].check()
    block.checks += 1
    block.check_seconds += block.clock() - began
    if verdict is not None and not verdict.ok:
        raise WrongDuringTiming(verdict)


def _retire(block: _Block) -> None:
    """Stop timing the baselines that the headline cannot need: proven 5 % slower than another, or not eligible, or of which enough is known."""
    for name in [name for name in block.enough if name in block.eligible]:
        above, below = (_pair_bound(block, name, LOOK_ERROR / 2, upper) for upper in (False, True))
        if (above > block.enough[name] or below < 1 / BAND) and _stands_in(block, name):
            block.eligible -= {name}
    limit = 1.05 * min(_pair_bound(block, name, LOOK_ERROR / 2, upper=True) for name in block.eligible)
    for name in [name for name in block.active if name not in (CANDIDATE, block.kept)]:
        if name not in block.eligible or _pair_bound(block, name, LOOK_ERROR / 2, upper=False) > limit:
            block.active.remove(name)


def _stands_in(block: _Block, name: str) -> bool:
    """Whether a baseline that is timed on is as quick as this one: else all that this one was quicker than would pass for the best without it."""
    over = {one: median(_pairs(block, one, block.overhead)) for one in block.eligible if one == name or one in block.active}
    return any(one != name and pairs <= over[name] + math.log(BAND) for one, pairs in over.items())


def _retire_hopeless(block: _Block) -> None:
    """Before the first look, which comes late for slow programs: drop a baseline that was far slower than another one in each pass."""
    if not 3 <= len(block.raw[CANDIDATE]) < FIRST_LOOK:
        return
    active = [name for name in block.eligible if name in block.active]
    block.active = [name for name in block.active if name in (CANDIDATE, block.kept) or not any(_far_above(block, name, other) for other in active)]


def _far_above(block: _Block, name: str, other: str) -> bool:
    """Whether a program took HOPELESS times as long as another one in every pass: what slows a pass down hits both."""
    return all(one > HOPELESS * two for one, two in zip(block.raw[name], block.raw[other], strict=True))


# --- looking at the pairs ----------------------------------------------------------------------------------------------------------


def _pairs(block: _Block, name: str, overhead: Overhead) -> list[float]:
    """Return log(baseline / candidate) of every pass in which both were called."""
    times = zip(block.net(name, overhead), block.net(CANDIDATE, overhead), strict=False)
    return [math.log(baseline / candidate) for baseline, candidate in times]


def _pair_bound(block: _Block, name: str, error: float, upper: bool) -> float:
    """Return a bound of the speed-up against one baseline, the worst over what the overhead may really be."""
    overheads = {block.overhead.scaled(factor) for factor in (1 - OVERHEAD_DOUBT, 1, 1 + OVERHEAD_DOUBT)}
    bounds = [bound(_pairs(block, name, overhead), error, upper) for overhead in overheads]
    return _exp(max(bounds) if upper else min(bounds))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _look(block: _Block) -> _Look:
    """Return the speed-up over the best eligible baseline, which is the smallest of all, with its interval.

    Picking the best after seeing the times would favour it by luck; hence each baseline has its own interval, and the smallest of the
    true speed-ups lies above the smallest lower bound, and below all upper bounds once their error is shared out among them.
    """
    error = look_error(len(block.raw[CANDIDATE])) / 2
    contenders = [name for name in sorted(block.eligible) if name in block.active or len(block.raw[name]) >= FIRST_LOOK]  # not the hopeless
    speedups = {name: math.exp(median(_pairs(block, name, block.overhead))) for name in contenders}
    best = min(speedups, key=lambda name: speedups[name])
    low = min(_pair_bound(block, name, error, upper=False) for name in contenders)
    high = min(_pair_bound(block, name, error / len(contenders), upper=True) for name in contenders)
    pairs = _pairs(block, best, block.overhead)
    noise = spread(pairs)
    verdict = judge(low, high, margin(noise))
    if _too_short(block, best) or (verdict in ("FASTER", "SLOWER") and not _steady(pairs)):
        verdict = "UNSURE"
    return _Look(best, speedups[best], low, high, noise, verdict)


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


def _too_short(block: _Block, best: str) -> bool:
    """Whether either call is hardly longer than an empty one, so that what is left after subtraction is mostly doubt."""
    least = block.overhead.empty * (1 + OVERHEAD_DOUBT) * 1.05
    return min(median(block.raw[name]) for name in (CANDIDATE, best)) < least


def _check_floor(block: _Block, floor_seconds: float) -> None:
    """Raise BelowFloor when even the upper bound of the candidate's time is below the floor, and no trusted program was as fast."""
    high = bound(block.net(CANDIDATE, block.overhead.scaled(1 - OVERHEAD_DOUBT)), LOOK_ERROR / 2, upper=True)
    if high < floor_seconds and not _floor_contradicted(block, floor_seconds):
        raise BelowFloor(median(block.net(CANDIDATE)), floor_seconds)


def _floor_contradicted(block: _Block, floor_seconds: float) -> bool:
    """Whether a baseline, which is trusted, was faster than the floor: then the floor is wrong."""
    return any(median(block.net(name)) < floor_seconds for name in block.raw if name != CANDIDATE and block.raw[name])


# --- the result --------------------------------------------------------------------------------------------------------------------


def _timing(block: _Block, name: str) -> Timing:
    samples = block.net(name)
    low, high = median_interval(samples)
    return Timing(tuple(samples), median(samples), low, high)


def _measurement(block: _Block, look: _Look, floor_seconds: float, confirmed: float | None) -> Measurement:
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
        "correlation_time": round(correlation_time(_pairs(block, look.best, block.overhead)), 3),
        "eligible": ",".join(sorted(block.eligible)),
    }
    for name in names:
        conditions[f"speedup_over_{name}"] = math.exp(median(_pairs(block, name, block.overhead)))
    if confirmed is not None:
        conditions["speedup_in_second_block"] = confirmed
    missing = _missing(look)
    if missing:
        dependence = conditions["correlation_time"]
        seen = f"{conditions['pairs']} pairs of calls, which depended on one another ({dependence})"
        conditions["note"] = f"too little was seen for {missing}: {seen}"
    elif look.spread > QUIET:
        conditions["note"] = f"the machine was busy: pairs of calls differed by {look.spread:.0%}, so that {margin(look.spread):.2f}x was asked for"
    if _too_short(block, look.best):
        conditions["note"] = "the call is hardly longer than an empty one; no verdict"
    if floor_seconds and _floor_contradicted(block, floor_seconds):
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


def _missing(look: _Look) -> str:
    """Say which bounds the interval lacks: without the lower one no program is FASTER, without the upper one it may be."""
    low, high = look.low <= 0, look.high == math.inf
    return "an interval" if low and high else "its lower bound" if low else "its upper bound, the largest ratio seen in its place" if high else ""


def _finite(block: _Block, look: _Look) -> tuple[float, float]:
    """Return the interval; where there were too few pairs for a bound, the smallest or largest ratio seen (`_missing`)."""
    pairs = _pairs(block, look.best, block.overhead)
    low = look.low if look.low > 0 else math.exp(min(pairs))
    high = look.high if look.high < math.inf else math.exp(max(pairs))
    return min(low, look.speedup), max(high, look.speedup)
