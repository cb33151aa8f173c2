"""The one judgement of a schedule, whichever way it came: the command, the decorator, the polish, a replay, the suite and agents all ask here.

    judge(child, image, original)  ->  Judgement       in a process of its own: bits, then pairs with the original, warm and cold
    first_accepted(evaluator, fastest(records))        the fastest of a search that the judgement accepts

Accepted is what gives the original's bits, is surely faster on warm inputs (by more than the original is than itself), and is not surely slower where
single launches find the caches cold: a kernel is launched among others as often as back to back. Hints to the caches gain warm and may lose cold; a
schedule that is refused for that is judged again without them.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from warpwright.base import Action, Candidate, Record, Task, is_baseline
from warpwright.domains.sass import domain, script
from warpwright.domains.sass.editing import edits
from warpwright.errors import WarpwrightError

EPOCHS, EPOCH_US, EPOCH_PAIRS = 12, 10_000.0, (6, 25)
"""Of a judgement: epochs, how long pairs are timed in each, and how many they are at least and at most; of each regime."""

COLD_US = 150.0
"""What a single launch on cold caches takes besides its own time, about: writing FLUSHED bytes, and waiting."""

SEEDS, STRESS_SECONDS, ANSWER_SECONDS = 20, 2.0, 60.0
"""Inputs that a schedule is compared on, how long its launches are compared besides, and how long an answer may take."""

LEVEL = 0.99
TRIED = 3
"""Of the fastest candidates of a search: where the judgement refuses the best, the next one is judged."""

Interval = tuple[float, float, float]
"""Median, and the bounds of its confidence interval."""


class Asked(Protocol):
    """The child process (process.py), as a judgement uses it."""

    def start(self) -> Mapping[str, Any]: ...

    def ask(self, request: Mapping[str, Any], seconds: float = ..., alone: bool = ...) -> Mapping[str, Any]: ...

    def end(self) -> None: ...


class Judging(Protocol):
    """What judges candidates: an evaluator of cubins."""

    def judge(self, candidate: Candidate, stress: float = ...) -> Judgement: ...


@dataclass(frozen=True)
class Judgement:
    """What a schedule is worth beside the original, measured in a process of its own. All intervals are of 99 %."""

    speedup: float
    interval: tuple[float, float]
    """On warm inputs."""
    same: float
    same_interval: tuple[float, float]
    """The original against itself, loaded a second time, on warm inputs."""
    cold: Interval
    """The speed-up of single launches that find nothing of their own in the caches."""
    original_us: float
    candidate_us: float
    launches: int
    """Launches that were compared bit by bit."""
    differ: int
    """Words that were other than the original's."""

    @property
    def refusal(self) -> str:
        """Why the schedule is not accepted, in words; "" where it is."""
        if self.differ:
            return f"{self.differ} other words in {self.launches} launches"
        if self.interval[0] <= max(1.0, self.same_interval[1]):
            return f"{percent(self.speedup)} on warm inputs ({span(self.interval)}; the original against itself {span(self.same_interval)})"
        if self.cold[2] < 1.0:
            return f"{percent(self.speedup)} on warm inputs, but {percent(self.cold[0])} ({span(self.cold[1:])}) on cold caches"
        return ""

    @property
    def accepted(self) -> bool:
        """Is it as right as the original, faster on warm inputs and not slower on cold caches?"""
        return not self.refusal

    @property
    def only_cold_refuses(self) -> bool:
        """Would it be accepted if it were not slower on cold caches?"""
        return bool(self.refusal) and replace(self, cold=(1.0, 1.0, 1.0)).accepted


@dataclass(frozen=True)
class Accepted:
    """The first of some candidates that the judgement accepts, if any, and what was said of the others."""

    candidate: Candidate | None
    judgement: Judgement | None
    """Of the accepted one; else of the last that was judged, None where none was."""
    refusals: tuple[str, ...] = ()


def judge(child: Asked, image: Path, original: Path, seeds: int = SEEDS, stress: float = STRESS_SECONDS) -> Judgement:
    """Judge a cubin in a process of its own, where nothing else ran before; compare every launch of `stress` seconds."""
    child.end()
    fresh = list(range(7_000_000, 7_000_000 + seeds))
    checked = child.ask({"do": "evaluate", "image": str(image), "seeds": fresh, "rounds": [], "worth": 0.0}, ANSWER_SECONDS)
    if any(checked["differ"]):
        return _wrong(child, seeds, sum(checked["differ"]))
    timed, again = in_epochs(child, image, cold=True), in_epochs(child, original)
    launches = max(10, min(1000, int(1e6 * stress / 4 / child.start()["us"])))
    request = {"do": "stress", "image": str(image), "seeds": [11, 12, 13, 14], "launches": launches, "seconds": stress}
    stressed = child.ask(request, ANSWER_SECONDS, alone=False)
    child.end()
    speedup, low, high = interval(ratios(timed["warm"]), LEVEL)
    same, same_low, same_high = interval(ratios(again["warm"]), LEVEL)
    cold = interval(ratios(timed["cold"]), LEVEL)
    times = statistics.median(timed["warm"]["original_us"]), statistics.median(timed["warm"]["candidate_us"])
    differ = sum(stressed["differ"]) + timed["left"]
    return Judgement(speedup, (low, high), same, (same_low, same_high), cold, *times, stressed["launches"] + seeds, differ)


def _wrong(child: Asked, launches: int, differ: int) -> Judgement:
    """Return the judgement of what gave other words: its times are nobody's concern."""
    us = child.start()["us"]
    child.end()
    return Judgement(1.0, (1.0, 1.0), 1.0, (1.0, 1.0), (1.0, 1.0, 1.0), us, us, launches, differ)


def in_epochs(child: Asked, image: Path, warm: bool = True, cold: bool = False) -> Mapping[str, Any]:
    """Time a cubin beside the original in epochs, on warm inputs, on cold caches or both."""
    about, (least, most) = child.start(), EPOCH_PAIRS

    def pairs(us: float) -> int:
        return max(least, min(most, round(EPOCH_US / (4 * us))))

    counts = {"pairs": pairs(about["us"] * about["inner"]) if warm else 0, "cold": pairs(about["us"] + COLD_US) if cold else 0}
    return child.ask({"do": "epochs", "image": str(image), "epochs": EPOCHS, **counts}, ANSWER_SECONDS)


def fastest(records: Iterable[Record], most: int = TRIED) -> list[Record]:
    """Return the fastest few of what a search took for faster."""
    faster = [record for record in records if record.measurement is not None and record.measurement.verdict == "FASTER"]
    sure = [record for record in faster if not is_baseline(record) and record.status == "ok"]
    return sorted(sure, key=lambda record: -record.speedup)[:most]


def first_accepted(evaluator: Judging, records: Iterable[Record], stress: float = STRESS_SECONDS, until: float = math.inf) -> Accepted:
    """Judge the candidates of some records, in turn, until one is accepted; no further one after `until`, by the monotonic clock."""
    refusals: list[str] = []
    judgement: Judgement | None = None
    for record in records:
        waiting = [record.candidate]
        while waiting and (not refusals or time.monotonic() < until):
            candidate = waiting.pop()
            try:
                judgement = evaluator.judge(candidate, stress=stress)
            except WarpwrightError as error:  # the next one may be better
                refusals.append(str(error)[:300])
                continue
            if judgement.accepted:
                return Accepted(candidate, judgement, tuple(refusals))
            refusals.append(judgement.refusal)
            if judgement.only_cold_refuses:
                waiting += unhinted(record.task, candidate)
    return Accepted(None, judgement, tuple(refusals))


def unhinted(task: Task, candidate: Candidate) -> list[Candidate]:
    """Return a candidate with the compiler's own hints to the caches; nothing where it has no others."""
    schedule = script.read(candidate.source.text, domain.kernel_of(task))
    plain = edits.without_hints(schedule)
    return [domain.lower(plain, (*candidate.actions, Action("without_hints", schedule.kernel.name)))] if plain != schedule else []


def ratios(times: Mapping[str, Any]) -> list[float]:
    """Return the speed-ups of pairs, or of epochs."""
    return [a / b for a, b in zip(times["original_us"], times["candidate_us"], strict=True)]


def interval(values: Sequence[float], level: float) -> Interval:
    """Return the median with its distribution-free interval: the order statistics whose ranks the binomial distribution gives.

    With too few values for the level (fewer than 6 for 95 %, 8 for 99 %) the interval is the whole range.
    """
    ordered, count = sorted(values), len(values)
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += math.comb(count, rank) * 0.5**count
        if 2 * tail > 1 - level:
            break
        rank += 1
    rank = max(rank, 1)
    return statistics.median(ordered), ordered[rank - 1], ordered[count - rank]


def percent(speedup: float) -> str:
    """Return a speed-up as a gain, in words."""
    return f"{100 * (speedup - 1):+.2f} %"


def span(bounds: Sequence[float]) -> str:
    """Return the bounds of a speed-up as gains, in words."""
    return f"{percent(bounds[0])} to {percent(bounds[1])}"
