"""What the parent's clock reads more than a program's own clock would, by the length of the call.

A call of nothing shows what the message, the wake-up and the answer take. A call that waits for the device takes more beside its work: the way from
the idle device to the parent's answer, some twenty lines of Python and a pipe, was 64 us after 1.5 ms and 158 us after 11 ms on an H200. The likely
cause are the core's caches, which others take while the process waits. So it is measured, too, with calls that do nothing but wait, by both clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Overhead:
    """Points of a line that does not fall: (seconds of a call by the parent's clock, seconds of it that are overhead), the call of nothing first."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def constant(cls, seconds: float) -> Overhead:
        """Return one that is the same for every call."""
        return cls(((seconds, seconds),))

    @classmethod
    def measured(cls, points: Sequence[tuple[float, float]]) -> Overhead:
        """Return the line through what was measured, in order of length; a longer call has no less overhead than a shorter one."""
        kept: list[tuple[float, float]] = []
        for span, seconds in sorted(points):
            kept.append((span, max(seconds, kept[-1][1] if kept else 0.0)))
        return cls(tuple(kept))

    @property
    def empty(self) -> float:
        """Seconds of a call of nothing."""
        return self.points[0][1]

    def of(self, span: float) -> float:
        """Return the overhead in a call of `span` seconds by the parent's clock; beyond the longest that was measured, that one's."""
        before = self.points[0]
        for point in self.points:
            if span <= point[0]:
                share = (span - before[0]) / (point[0] - before[0]) if point[0] > before[0] else 1.0
                return before[1] + max(0.0, share) * (point[1] - before[1])
            before = point
        return before[1]

    def scaled(self, factor: float) -> Overhead:
        """Return one that is `factor` times as large for every call."""
        return Overhead(tuple((span, factor * seconds) for span, seconds in self.points))

    def __truediv__(self, calls: int) -> Overhead:
        """Return what falls to each of the calls of a turn, by the seconds of one."""
        return Overhead(tuple((span / calls, seconds / calls) for span, seconds in self.points))
