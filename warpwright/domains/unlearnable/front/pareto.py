"""The front of protection against quality, from records alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.base import BASELINE, Record, is_baseline


@dataclass(frozen=True)
class Point:
    """One measured choice."""

    name: str
    """Of a preset, or the actions."""
    accuracy: float
    """On clean test images, mean over seeds, percent: lower protects better."""
    spread: float
    """Largest minus smallest."""
    psnr: float
    ssim: float
    perceptual: float
    record: str

    def row(self) -> dict[str, Any]:
        """Return the point for a table."""
        figures = {"accuracy %": f"{self.accuracy:.1f}", "spread": f"{self.spread:.1f}", "PSNR dB": f"{self.psnr:.1f}", "SSIM": f"{self.ssim:.3f}"}
        return {"choice": self.name, **figures, "perceptual": f"{self.perceptual:.4f}", "record": self.record[:8]}


def points(records: Iterable[Record]) -> list[Point]:
    """Return the points of the records that passed, one for each program."""
    by_key: dict[str, Point] = {}
    for record in records:
        measured = record.measurement
        if record.status != "ok" or measured is None or "psnr" not in measured.conditions:
            continue
        told = {name: float(measured.conditions[name]) for name in ("accuracy", "spread", "psnr", "ssim", "perceptual")}
        own = record.candidate.proposer.removeprefix(BASELINE) if is_baseline(record) else ", ".join(map(str, record.candidate.actions)) or "gentle"
        if record.candidate.key not in by_key or is_baseline(record):
            by_key[record.candidate.key] = Point(own, **told, record=record.key)
    return list(by_key.values())


def front(points: Sequence[Point], quality: str = "psnr") -> list[Point]:
    """Return the points that no other beats in both accuracy and quality, the best protected first."""
    sign = -1.0 if quality == "perceptual" else 1.0
    best, kept = float("-inf"), []
    for point in sorted(points, key=lambda one: (one.accuracy, -sign * getattr(one, quality))):
        if sign * getattr(point, quality) > best:
            best = sign * getattr(point, quality)
            kept.append(point)
    return kept


def beats(point: Point, other: Point, margin: float = 0.0) -> bool:
    """Is a point better in both, in accuracy by more than `margin` points?"""
    return point.accuracy < other.accuracy - margin and point.psnr > other.psnr
