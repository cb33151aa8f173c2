"""Whether a program slows others down while they are timed: a baseline beside a candidate that may run, and beside one that stands still.

On a GPU a candidate's process is not stopped between its turns: its threads may take memory bandwidth and the processor's clock from the
baselines, its kernels the device. So a program that was FASTER is looked at once more. In each round it is called and the baseline after it, one to
three times: once while the candidate may do what it likes, once while it is stopped (SIGSTOP), in random order, on one core. By that draw a program
that lets others alone is as likely to seem slower on the one side as on the other, whatever the noise: the signed ranks of the differences have an
exact distribution (Wilcoxon). With calls that are interrupted now and then (5 % of them threefold) it finds 10 to 30 % in five of six runs, 30 % in
three of five turns in half of them (`tests/targets/test_slowed.py`).

Of a program that is suspected all rounds are made, 1.5 to 4 s of an H200, unless it is sure before that it slows nobody down by as much as BAND.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from warpwright.timing.measure import BAND, Timeable
from warpwright.timing.sequential import median

FIRST_ROUNDS = 8
"""After these the look ends for a program of which nothing is suspected."""

LOOKS, HARMLESS = (FIRST_ROUNDS, 12, 16, 24, 32), 1e-3
"""Rounds after which it ends for one of which it is surely less than BAND, and the probability of as much by chance where it is BAND."""

MOST_TURNS = 3
"""Of the baseline after one of the candidate's: as in a pass, so that one that begins late does not go by how soon it is asked again."""

SUSPECTED, SURE = 0.15, 1e-4
"""Probability of as large a sum of ranks by chance: below the first all rounds are made, below the second a program is rejected."""


def slowed(
    candidate: Timeable, baseline: Timeable, fresh: Callable[[], Any], stopped: Callable[[], AbstractContextManager[None]], rng: random.Random
) -> float:
    """Return how many times as long the baseline takes while the candidate may run; 1 where that may be chance, or is less than BAND."""
    differences: list[float] = []
    for rounds in LOOKS:
        while len(differences) < rounds:
            differences.append(_round(candidate, baseline, fresh, stopped, rng))
        if rounds == FIRST_ROUNDS and probability(differences) > SUSPECTED:
            return 1.0
        if probability([math.log(BAND) - one for one in differences]) < HARMLESS:
            return 1.0
    if probability(differences) > SURE:
        return 1.0
    longer = math.exp(sum(differences) / len(differences))
    return longer if longer > BAND else 1.0


def _round(
    candidate: Timeable, baseline: Timeable, fresh: Callable[[], Any], stopped: Callable[[], AbstractContextManager[None]], rng: random.Random
) -> float:
    """Return the log-ratio of the baseline's time beside the candidate that may run and that beside the one that stands still."""
    place, turns = rng.random(), rng.randint(1, MOST_TURNS)
    taken: dict[bool, list[float]] = {True: [], False: []}
    for still in rng.sample((True, False), 2):
        inputs = fresh()
        candidate.prepare(inputs, place)
        candidate.go()
        with stopped() if still else nullcontext():
            for _ in range(turns):
                baseline.prepare(inputs, place)
                taken[still].append(baseline.go())
    return math.log(median(taken[False]) / median(taken[True]))


def probability(differences: Sequence[float]) -> float:
    """Return the probability of as large a sum of the ranks of positive differences, or a larger one, where each is as likely negative."""
    ordered = sorted(differences, key=abs)
    seen = sum(rank for rank, difference in enumerate(ordered, 1) if difference > 0)
    ways = [1.0]
    for rank in range(1, len(ordered) + 1):
        ways = [(ways[at] if at < len(ways) else 0.0) + (ways[at - rank] if at >= rank else 0.0) for at in range(len(ways) + rank)]
    return sum(ways[seen:]) / 2 ** len(ordered)


def reason(longer: float, name: str) -> str:
    """Return what is said of such a program."""
    return f"{name} takes {longer:.2f} times as long while this program's process may run beside it as while that stands still"
