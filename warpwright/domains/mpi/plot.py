"""A picture of what was measured: half a ping-pong over the size of a message, the library's own engine and ours, for each length of block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

from warpwright.domains.mpi.model import METHODS, Model, Point

_PANEL, _HEIGHT, _LEFT, _BELOW, _TOP = 240, 200, 52, 34, 40
"""Pixels: one panel, what lies left of it, below and above."""
_STYLE = (
    "text{font:11px sans-serif}.grid{stroke:#ddd}.library{stroke:#888;fill:none;stroke-width:1.5}.packed{stroke:#06c;fill:none;stroke-width:2}"
    ".chosen{fill:#06c;fill-opacity:.08}.band{stroke:none;fill-opacity:.25}"
)


def picture(points: Sequence[Point], title: str) -> str:
    """Return the measurements as SVG: a panel for each block, shaded where the model takes packing; bands are the middle halves of the times."""
    points = [point for point in points if point.method in METHODS]
    blocks = sorted({point.block for point in points})
    sizes = sorted({point.bytes for point in points})
    model = Model(points)
    low, high = min(point.time.low for point in points) / 1.2, max(point.time.high for point in points) * 1.2

    def x(panel: int, size: float) -> float:
        return panel * (_PANEL + _LEFT) + _LEFT + (_PANEL - 20) * math.log(size / sizes[0]) / max(math.log(sizes[-1] / sizes[0]), 1e-9)

    def y(us: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BELOW) * (1 - math.log(us / low) / math.log(high / low))

    told = f'{escape(title)}: half a ping-pong, <tspan fill="#888">library</tspan> and <tspan fill="#06c">packed</tspan>'
    parts = [f'<text x="{_LEFT}" y="14">{told}</text>']
    for panel, block in enumerate(blocks):
        mine = [size for size in sizes if any(point.block == block and point.bytes == size for point in points)]
        parts.append(f'<text x="{x(panel, sizes[0]):.0f}" y="{_TOP - 8}">blocks of {block} bytes</text>')
        parts += [_tick(x(panel, sizes[0]), x(panel, sizes[-1]), y(us), us) for us in _decades(low, high)]
        parts += [f'<text x="{x(panel, size):.0f}" y="{_HEIGHT - 16}" text-anchor="middle">{_bytes(size)}</text>' for size in mine[::3]]
        parts += [
            f'<rect class="chosen" x="{x(panel, a):.1f}" y="{_TOP}" width="{x(panel, b) - x(panel, a):.1f}" height="{_HEIGHT - _TOP - _BELOW}"/>'
            for a, b in pairwise(mine) if model.chosen(a, block) == model.chosen(b, block) == "packed"
        ]  # fmt: skip
        for method in METHODS:
            curve = sorted((point for point in points if point.method == method and point.block == block), key=lambda point: point.bytes)
            band = [(p.bytes, p.time.low) for p in curve] + [(p.bytes, p.time.high) for p in reversed(curve)]
            parts.append(f'<polygon class="band" fill="{"#888" if method == "library" else "#06c"}" points="{_line(band, panel, x, y)}"/>')
            parts.append(f'<polyline class="{method}" points="{_line([(p.bytes, p.time.us) for p in curve], panel, x, y)}"/>')
    width = len(blocks) * (_PANEL + _LEFT)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}" width="{width}"><style>{_STYLE}</style>{"".join(parts)}</svg>\n'


def _line(points: Sequence[tuple[int, float]], panel: int, x: Callable[[int, float], float], y: Callable[[float], float]) -> str:
    return " ".join(f"{x(panel, size):.1f},{y(us):.1f}" for size, us in points)


def _tick(left: float, right: float, at: float, us: float) -> str:
    label = f'<text x="{left - 6:.0f}" y="{at + 4:.1f}" text-anchor="end">{us:g} us</text>'
    return f'<line class="grid" x1="{left:.0f}" x2="{right:.0f}" y1="{at:.1f}" y2="{at:.1f}"/>{label}'


def _decades(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"
