"""Which of some records to recommend, and how near the roof one stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warpwright.base import Record, is_baseline
from warpwright.timing import roofline
from warpwright.timing.regimes import LEAST


def best(records: Iterable[Record]) -> Record | None:
    """Return the record to recommend: the fastest that is proven FASTER, else the best baseline, else the fastest that passed."""
    found = Best()
    for record in records:
        found.take(record)
    return found.record


@dataclass
class Best:
    """The same, of records that come one by one: a search asks after each of thousands."""

    proven: Record | None = None
    passed: Record | None = None
    baselines: list[Record] = field(default_factory=list)

    def take(self, record: Record) -> None:
        """Let a record count; of two that are as fast the first one stays."""
        if record.status != "ok" or record.measurement is None:
            return
        self.passed = _faster(self.passed, record)
        if is_baseline(record):
            self.baselines.append(record)
        elif _proven(record):
            self.proven = _faster(self.proven, record)

    @property
    def baseline(self) -> Record | None:
        """The fastest baseline; or, where that falls below LEAST in another regime, the one within LEAST of it that loses least in any.

        torch.compile is often 1 % faster than eager in a stream, and by its checks before each call 4 to 6 % slower from idle.
        """
        if not self.baselines:
            return None
        fastest = max(self.baselines, key=lambda record: record.speedup)
        if _worst(fastest) >= LEAST:
            return fastest
        return max((record for record in self.baselines if record.speedup >= LEAST * fastest.speedup), key=_worst)

    @property
    def record(self) -> Record | None:
        """The record to recommend."""
        return self.proven or self.baseline or self.passed


def _faster(known: Record | None, record: Record) -> Record:
    return record if known is None or record.speedup > known.speedup else known


def _worst(record: Record) -> float:
    """Return the least of a record's speed-ups, of those of all regimes."""
    regimes = record.measurement.regimes.values() if record.measurement is not None else ()
    return min([record.speedup, *(regime.speedup for regime in regimes)])


def _proven(record: Record) -> bool:
    return record.measurement is not None and record.measurement.verdict == "FASTER" and not is_baseline(record)


def bandwidth_share(record: Record) -> float:
    """Return how much of the device's measured bandwidth the program would need if it moved only what every correct program moves; 0 if unknown."""
    measurement = record.measurement
    if measurement is None or measurement.unit != "s":
        return 0.0
    return roofline.bandwidth_share(measurement.conditions, measurement.candidate.median)
