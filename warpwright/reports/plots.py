"""Small inline SVG pictures for the reports: intervals of times, distance from the roofline, and curves over training epochs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

WIDTH, LEFT, ROW, LINE = 720, 190, 26, 14
"""Pixels: the picture, the column of names, one row, one line of text."""


@dataclass(frozen=True)
class Bar:
    """One program's time in seconds, with the bounds of its 95 % interval."""

    name: str
    median: float
    low: float
    high: float
    ours: bool = False


def intervals(bars: Sequence[Bar], floor_seconds: float | None = None) -> str:
    """Return a picture with a row a program: median and interval on a logarithmic axis, and the roofline floor as a line."""
    shown = [bar for bar in bars if bar.median > 0]
    if not shown:
        return ""
    values = [value for bar in shown for value in (bar.low or bar.median, bar.high or bar.median)] + ([floor_seconds] if floor_seconds else [])
    low, high = min(values) / 1.15, max(values) * 1.15
    height = ROW * len(shown) + 34

    def x(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * math.log(seconds / low) / math.log(high / low)

    parts = [_tick(x(value), value, height) for value in _ticks(low, high)]
    if floor_seconds:
        at = x(floor_seconds)
        title = f"roofline floor {time_text(floor_seconds)}"
        parts.append(f'<g><title>{title}</title><line x1="{at:.1f}" x2="{at:.1f}" y1="4" y2="{height - 24}" class="floor"/></g>')
    parts += [_row(index, bar, x(bar.median), x(bar.low or bar.median), x(bar.high or bar.median)) for index, bar in enumerate(shown)]
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="time per call with 95 % intervals">{"".join(parts)}</svg>'


def roofline(flops: float, moved: float, peak_flops: float, peak_bytes: float, bars: Sequence[Bar]) -> str:
    """Return the roofline: flops a second over flops a byte, both logarithmic, with a point for each program.

    All programs stand at the intensity of the task as written, so that one above another is faster; one above the roof avoids arithmetic.
    """
    shown = [bar for bar in bars if bar.median > 0]
    if not (flops and moved and peak_flops and peak_bytes and shown):
        return ""
    intensity, ridge, height = flops / moved, peak_flops / peak_bytes, 240
    left, right = min(intensity, ridge) / 8, max(intensity, ridge) * 8
    rates = [flops / bar.median for bar in shown]
    low, high = min([*rates, left * peak_bytes]) / 2, max([*rates, peak_flops]) * 3

    def x(value: float) -> float:
        return 70 + (WIDTH - 260) * math.log(value / left) / math.log(right / left)

    def y(value: float) -> float:
        return (height - 30) * (1 - math.log(value / low) / math.log(high / low))

    roof = f"{x(left):.1f},{y(left * peak_bytes):.1f} {x(ridge):.1f},{y(peak_flops):.1f} {x(right):.1f},{y(peak_flops):.1f}"
    label = f'<text x="{x(right):.1f}" y="{y(peak_flops) - 6:.1f}" text-anchor="end">{_rate(peak_flops)}</text>'
    parts = [f'<polyline points="{roof}" class="roof"/>', label]
    labels = _apart([y(rate) for rate in rates])
    parts += [
        _point(x(intensity), y(rate), label, f"{bar.name} {_rate(rate)}", bar.ours) for bar, rate, label in zip(shown, rates, labels, strict=True)
    ]
    axis = f'<text x="{(WIDTH - 120) / 2}" y="{height - 6}" text-anchor="middle" class="small">flops a byte of the task: {intensity:.3g}</text>'
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="roofline">{"".join(parts)}{axis}</svg>'


@dataclass(frozen=True)
class Tried:
    """One program of a search: its speed-up, 0 for one that did not pass, and what to show of it."""

    speedup: float
    label: str
    status: str


def search(tried: Sequence[Tried]) -> str:
    """Return a search in the order of its programs: a point for each, a cross for one that did not pass, and the best so far as a line."""
    passed = [one.speedup for one in tried if one.speedup > 0]
    if len(tried) < 2 or not passed:
        return ""
    height, low, high = 200, min(*passed, 1.0) / 1.1, max(*passed, 1.0) * 1.1

    def x(index: int) -> float:
        return 60 + (WIDTH - 90) * index / (len(tried) - 1)

    def y(speedup: float) -> float:
        return 10 + (height - 50) * (1 - math.log(speedup / low) / math.log(high / low))

    ticks = [value for value in _ticks(low, high) if value >= low]
    parts = [f'<line x1="60" x2="{WIDTH - 30}" y1="{y(v):.1f}" y2="{y(v):.1f}" class="grid"/><text x="52" y="{y(v) + 4:.1f}" text-anchor="end" '
             f'class="small">{v:g}x</text>' for v in {*ticks, 1.0}]  # fmt: skip
    best, line = 0.0, []
    for index, one in enumerate(tried):
        if one.speedup > 0:
            best = max(best, one.speedup)
            parts.append(f'<g class="base"><title>{escape(one.label)}</title><circle cx="{x(index):.1f}" cy="{y(one.speedup):.1f}" r="3.5"/></g>')
        else:
            title = escape(f"{one.status}: {one.label}")
            parts.append(f'<g><title>{title}</title><text x="{x(index):.1f}" y="{height - 32}" text-anchor="middle" class="bad">×</text></g>')
        if best:
            line.append(f"{x(index):.1f},{y(best):.1f}")
    parts.append(f'<polyline points="{" ".join(line)}" class="roof"/>')
    title = "programs in the order of the search; line: the best so far"
    label = f'<text x="{WIDTH / 2}" y="{height - 6}" text-anchor="middle" class="small">{title}</text>'
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="progress of the search">{"".join(parts)}{label}</svg>'


def _apart(places: Sequence[float]) -> list[float]:
    """Return the places moved down as far as it takes for no two lines of text to lie on one another."""
    moved = list(places)
    order = sorted(range(len(moved)), key=moved.__getitem__)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + LINE)
    return moved


def _point(x: float, y: float, label_y: float, title: str, ours: bool) -> str:
    label = f'<title>{escape(title)}</title><text x="{x + 10:.1f}" y="{label_y + 4:.1f}">{escape(title)}</text>'
    return f'<g class="{"ours" if ours else "base"}">{label}<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/></g>'


def _rate(flops: float) -> str:
    return f"{flops / 1e12:.3g} Tflop/s" if flops >= 1e12 else f"{flops / 1e9:.3g} Gflop/s"


def _row(index: int, bar: Bar, median: float, low: float, high: float) -> str:
    y = ROW * index + 18
    mark = "ours" if bar.ours else "base"
    title = escape(f"{bar.name}: {time_text(bar.median)} [{time_text(bar.low)}, {time_text(bar.high)}]")
    return (
        f'<g class="{mark}"><title>{title}</title><text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(bar.name)}</text>'
        f'<line x1="{low:.1f}" x2="{max(high, low + 1):.1f}" y1="{y}" y2="{y}" stroke-width="3"/><circle cx="{median:.1f}" cy="{y}" r="5"/></g>'
    )


def _tick(at: float, seconds: float, height: int) -> str:
    return (
        f'<line x1="{at:.1f}" x2="{at:.1f}" y1="4" y2="{height - 24}" class="grid"/>'
        f'<text x="{at:.1f}" y="{height - 8}" text-anchor="middle" class="small">{time_text(seconds)}</text>'
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return round values 1, 2, 5 x 10^n between the bounds."""
    first = math.floor(math.log10(low))
    steps = [step * 10.0**power for power in range(first, math.ceil(math.log10(high)) + 1) for step in (1, 2, 5)]
    inside = [value for value in steps if low <= value <= high]
    return inside if len(inside) <= 8 else [value for value in inside if f"{value:e}"[0] == "1"]


def time_text(seconds: float) -> str:
    """Return a time with three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


_COLOURS = ("#1a7f37", "#cf222e", "#0969da", "#9a6700", "#8250df", "#57606a")


def curves(lines: Sequence[tuple[str, Sequence[float]]], top: float = 100.0, along: str = "epoch") -> str:
    """Return a picture of named lines of values from 0 to `top`, one value a step; empty where no line has two values."""
    shown = [(name, values) for name, values in lines if len(values) > 1]
    if not shown:
        return ""
    height, right = 260, WIDTH - 230
    longest = max(len(values) for _, values in shown)

    def x(step: int) -> float:
        return 40 + (right - 40) * step / (longest - 1)

    def y(value: float) -> float:
        return 10 + (height - 40) * (1 - value / top)

    parts = [
        f'<line x1="40" x2="{right}" y1="{y(v):.1f}" y2="{y(v):.1f}" class="grid"/><text x="34" y="{y(v) + 4:.1f}" text-anchor="end">{v:g}</text>'
        for v in (0.0, top / 4, top / 2, 3 * top / 4, top)
    ]
    for number, (name, values) in enumerate(shown):
        colour, at = _COLOURS[number % len(_COLOURS)], 20 + 18 * number
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in enumerate(values))
        parts.append(f'<polyline class="curve" points="{points}" stroke="{colour}"/>')
        parts.append(f'<line x1="{right + 12}" x2="{right + 28}" y1="{at}" y2="{at}" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{right + 34}" y="{at + 4}">{escape(name)}</text>')
    parts.append(f'<text x="{(40 + right) / 2:.0f}" y="{height - 4}" text-anchor="middle" class="small">{escape(along)}, 1 to {longest}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(along)} curves">{"".join(parts)}</svg>'
