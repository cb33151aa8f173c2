"""What one interleaved run holds: the programs, the seconds of their calls, and what a look at them says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from warpwright.base import Comparison, Verdict
from warpwright.timing.overhead import Overhead

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


@dataclass(frozen=True)
class Look:
    """What the pairs so far say of the candidate against the best eligible baseline."""

    best: str
    speedup: float
    low: float
    high: float
    spread: float
    """Of the log-ratios of the pairs."""
    verdict: Comparison


@dataclass
class Block:
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
