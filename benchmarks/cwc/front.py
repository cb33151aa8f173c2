"""Draw a result's front: clean test accuracy over PSNR of every preset and choice, from rows alone. `python -m benchmarks.cwc.front RESULTS ...`

Writes front.svg into the first folder, and its README's tables; the others lend their rows. Points are plain trainings of ResNet-18 on protected
images of CIFAR-10, with half the spread up and down; PSNR is that of the mean error in the rows `images`. A line joins the points of one number of
epochs that no other beats. Of several rows for one point the first counts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.cwc.cifar_parts import chosen_by
from warpwright.domains.unlearnable.front.choices import Choices
from warpwright.domains.unlearnable.protect import PRESETS

ACCURACY, PSNR = 18.5, 28.0
"""The goal: no more, no less."""

SET, NET = "CIFAR-10", "resnet18"
KEYS = ", several keys"

_WIDE, _HIGH, _LEFT, _LOW = 760, 440, 50, 36
_LABEL, _LINE = 230, 10
"""Pixels that a label takes."""

_COLOURS = ("#0969da", "#bf3989", "#1a7f37", "#9a6700")


@dataclass(frozen=True)
class Point:
    """What trainings on one preset's or choice's images came to."""

    name: str
    epochs: int
    accuracy: float
    """Mean, percent."""
    spread: float
    """Largest minus smallest of the seeds or keys."""
    count: int
    psnr: float


def points(rows: Sequence[dict[str, Any]]) -> list[Point]:
    """Return the points whose images were measured."""
    noise = {row["preset"]: float(row["of the mean error"]) for row in rows if row["table"] == "images" and row.get("set", SET) == SET}
    found: dict[tuple[str, int], Point] = {}
    for row in rows:
        if row["table"] != "trainings" or (row["set"], row["training"], row["on"], row["net"]) != (SET, "plain", "protected", NET):
            continue
        chosen, _, keys = str(row["preset"]).partition(",")
        form = chosen if chosen in PRESETS else _preset_of(chosen)
        if form in noise:
            figures = (int(row["epochs"]), float(row["clean test %"]), float(row["spread"]), int(row["seeds"]))
            point = Point(form + (KEYS if keys else ""), *figures, psnr=noise[form])
            found.setdefault((point.name, point.epochs), point)
    return list(found.values())


def _preset_of(recipe: str) -> str:
    """Return the preset that makes the choices of a recipe, else the recipe."""
    choices = chosen_by(recipe)
    for name, preset in PRESETS.items():
        spec, operator = preset.spec, preset.operator
        if choices == Choices(spec.k, spec.pb, spec.tap, operator.pad, operator.scale, candidates=spec.candidates) and not spec.min_response:
            return name
    return recipe


def unbeaten(found: Sequence[Point]) -> list[Point]:
    """Return the points of which no other of as many epochs is better in both, by PSNR."""
    best = [one for one in found if not any(_beats(other, one) for other in found)]
    return sorted(best, key=lambda one: one.psnr)


def _beats(a: Point, b: Point) -> bool:
    return a.epochs == b.epochs and a.accuracy <= b.accuracy and a.psnr >= b.psnr and (a.accuracy, a.psnr) != (b.accuracy, b.psnr)


def plot(found: Sequence[Point]) -> str:
    """Return an SVG."""
    near, far = min(PSNR, *(one.psnr for one in found)) - 1, max(PSNR, *(one.psnr for one in found)) + 2
    top = 1.1 * max(ACCURACY, *(one.accuracy + one.spread / 2 for one in found))

    def x(psnr: float) -> float:
        return _LEFT + (_WIDE - _LEFT - 20) * (psnr - near) / (far - near)

    def y(accuracy: float) -> float:
        return (_HIGH - _LOW) * (1 - accuracy / top)

    parts = [f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>']
    goal = f'x="{x(PSNR):.1f}" y="{y(ACCURACY):.1f}" width="{_WIDE - 20 - x(PSNR):.1f}" height="{y(0) - y(ACCURACY):.1f}"'
    parts.append(f'<rect {goal} fill="#dafbe1"><title>the goal: {ACCURACY} % at {PSNR:.0f} dB</title></rect>')
    for value in range(0, int(top) + 1, 5):
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDE - 20}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>')
    parts += [f'<text x="{x(value):.1f}" y="{_HIGH - 20}" text-anchor="middle">{value}</text>' for value in range(int(near) + 1, int(far) + 1)]
    labels: list[tuple[float, float, str]] = []
    for number, epochs in enumerate(sorted({one.epochs for one in found})):
        mine, colour = [one for one in found if one.epochs == epochs], _COLOURS[number % len(_COLOURS)]
        line = " ".join(f"{x(one.psnr):.1f},{y(one.accuracy):.1f}" for one in unbeaten(mine))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-dasharray="4 3" points="{line}"/>')
        parts.append(f'<text x="{_LEFT + 10}" y="{20 + 16 * number}" fill="{colour}">after {epochs} epochs</text>')
        for one in mine:
            low, high = y(one.accuracy - one.spread / 2), y(one.accuracy + one.spread / 2)
            parts.append(f'<line x1="{x(one.psnr):.1f}" x2="{x(one.psnr):.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}"/>')
            told = f"{one.name}: {one.accuracy:.1f} % ({one.count}) at {one.psnr:.1f} dB"
            place = f'cx="{x(one.psnr):.1f}" cy="{y(one.accuracy):.1f}"'
            parts.append(f'<circle {place} r="4" fill="{colour if one.count > 2 else "white"}" stroke="{colour}"><title>{told}</title></circle>')
            right = x(one.psnr)
            side, anchor = (7, "start") if right < _WIDE - _LABEL else (-7, "end")
            labels.append((y(one.accuracy) + 3, right + side, f'font-size="9" text-anchor="{anchor}" fill="{colour}">{one.name}</text>'))
    parts += [f'<text x="{right:.1f}" y="{down:.1f}" {rest}' for down, right, rest in _parted(labels)]
    parts.append(f'<text x="{_WIDE / 2}" y="{_HIGH - 4}" text-anchor="middle">PSNR of the mean error, dB; filled: three trainings or more</text>')
    parts.append(f'<text x="14" y="{_HIGH / 2}" transform="rotate(-90 14 {_HIGH / 2})" text-anchor="middle">clean test accuracy, %</text>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'


def _parted(labels: list[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return labels (down, right, text) moved down until none lies on another one."""
    placed: list[tuple[float, float, str]] = []
    for down, right, text in sorted(labels):
        while any(abs(right - other[1]) < _LABEL and abs(down - other[0]) < _LINE for other in placed):
            down += 1.0
        placed.append((down, right, text))
    return placed


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw."""
    folders = [Path(one) for one in (sys.argv[1:] if arguments is None else arguments)]
    rows = [row for folder in folders for row in tables.rows_of(folder)]
    found = points(rows)
    if found:
        (folders[0] / "front.svg").write_text(plot(found))
        for one in sorted(found, key=lambda one: (one.epochs, one.accuracy)):
            print(f"{one.epochs:3} epochs {one.accuracy:6.2f} % +- {one.spread / 2:.2f} ({one.count}) {one.psnr:6.2f} dB  {one.name}")
    readme = folders[0] / "README.md"
    if readme.exists():
        readme.write_text(tables.written(folders[0]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
