"""Draw docs/classwise_theory.svg: what filtering one class does to a Bayes classifier of a two-class Gaussian mixture (theory.py).

    python -m benchmarks.cwc.theory docs/classwise_theory.svg

Class -1 is left alone, class +1 is filtered by [a, 1, a]; d = 100. Lines: exact accuracy on clean data; dashes: the Chernoff bound;
dots: 20,000 samples each.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from warpwright.domains.unlearnable.cwc import theory

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 320, 60, 40, 16
DIMENSION, SAMPLES = 100, 20_000
MEANS = ((1.0, "#1a7f37"), (2.5, "#cf222e"), (5.0, "#0969da"))
BLURS = np.linspace(0.0, 0.48, 25)


def x(a: float) -> float:
    """Return the pixel column of a blur."""
    return LEFT + (WIDTH - LEFT - 170) * a / 0.5


def y(accuracy: float) -> float:
    """Return the pixel row of an accuracy between 0.45 and 1."""
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (accuracy - 0.45) / 0.55)


def line(values: list[float], colour: str, dashes: str = "") -> str:
    """Return a polyline over BLURS."""
    points = " ".join(f"{x(a):.1f},{y(value):.1f}" for a, value in zip(BLURS, values, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'


def drawing() -> str:
    """Return the SVG."""
    parts = []
    for accuracy in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        at = y(accuracy)
        parts.append(f'<line x1="{LEFT}" x2="{x(0.5):.0f}" y1="{at:.1f}" y2="{at:.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{accuracy:.1f}</text>')
    for a in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        parts.append(f'<text x="{x(a):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{a:g}</text>')
    for number, (length, colour) in enumerate(MEANS):
        mu = np.full(DIMENSION, length / np.sqrt(DIMENSION))
        parts.append(line([theory.clean_accuracy(0.0, float(a), mu) for a in BLURS], colour))
        parts.append(line([theory.clean_accuracy_bound(0.0, float(a), mu) for a in BLURS], colour, ' stroke-dasharray="5 4" opacity="0.6"'))
        for a in BLURS[::4]:
            seen = theory.simulate(0.0, float(a), mu, SAMPLES, seed=number)
            parts.append(f'<circle cx="{x(float(a)):.1f}" cy="{y(seen):.1f}" r="3.5" fill="{colour}"/>')
        parts.append(f'<text x="{x(0.5) + 12:.0f}" y="{TOP + 14 + 20 * number}" fill="{colour}">|mu| = {length:g}</text>')
    for number, said in enumerate(("line: exact", "dashes: bound", f"dots: {SAMPLES:,} samples", f"d = {DIMENSION}")):
        parts.append(f'<text x="{x(0.5) + 12:.0f}" y="{TOP + 94 + 18 * number}">{said}</text>')
    middle = (LEFT + x(0.5)) / 2
    said = "blur a of class +1 (class -1 unfiltered); up: accuracy on clean data"
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{said}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'font-family="system-ui, sans-serif" font-size="13" fill="#57606a"'
    return f'{head} {style}><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{"".join(parts)}</svg>\n'


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/classwise_theory.svg").write_text(drawing())
