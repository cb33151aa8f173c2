"""Stand-ins for timed programs: a virtual clock, and noise of the kinds that real machines make."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from warpwright.base import Verdict


@dataclass
class Machine:
    """A machine whose clock moves only when a program on it does something."""

    rng: Random
    spread: float = 0.07
    """Standard deviation of a call's log time: 0.05 to 0.09 was seen for a 1.6 ms call on a busy machine with two cores."""
    outliers: float = 0.03
    """Share of calls that are interrupted."""
    drift: float = 0.0
    """Change of the log time in one second."""
    memory: float = 0.0
    """Share of a slow noise, common to all programs, that is kept from call to call."""
    now: float = 0.0
    state: float = 0.0

    def call(self, seconds: float) -> float:
        """Return how long a call takes that would take `seconds` undisturbed."""
        self.state = self.memory * self.state + self.rng.gauss(0, 0.1 * math.sqrt(1 - self.memory**2)) if self.memory else 0.0
        log = self.rng.gauss(0, self.spread) + self.drift * self.now + self.state
        taken = seconds * math.exp(log) * (1 + self.rng.expovariate(0.5) if self.rng.random() < self.outliers else 1)
        self.now += taken
        return taken

    def clock(self) -> float:
        return self.now


@dataclass
class Fake:
    """A program of known speed."""

    name: str
    machine: Machine
    seconds: float
    overhead: float = 0.0
    prepare_seconds: float = 0.01
    verdict: Callable[[int], Verdict | None] = lambda call: None
    """The verdict on the n-th call."""
    first_calls: tuple[float, ...] = ()
    """Factors of the first calls' time."""
    calls: int = 0
    checks: list[int] = field(default_factory=list)
    seen: list[object] = field(default_factory=list)

    def prepare(self, inputs: object, place: float) -> None:
        self.machine.now += self.prepare_seconds
        self.seen.append(inputs)

    def go(self) -> float:
        factor = self.first_calls[self.calls] if self.calls < len(self.first_calls) else 1.0
        self.calls += 1
        return self.overhead + self.machine.call(self.seconds * factor)

    def check(self) -> Verdict | None:
        self.checks.append(self.calls)
        return self.verdict(self.calls)
