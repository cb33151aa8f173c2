"""The prompt of the policy: the program, its place under the roof, and two recipes with their measured speed-ups, far apart.

Contrastive exemplars after CUDA-L1 (arXiv 2507.14111, section 2.4.3, eq. 1): two distinct buckets of speed are drawn by a softmax of the bucket's
speed, centred on the mean, then one recipe uniformly inside each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal

from warpwright.base import Action
from warpwright.policy.words import Places, roof_word, speed_step, speed_word

Recipe = tuple[Action, ...]

Exemplars = Literal["contrast", "random", "none"]

TEMPERATURE = 2.0
"""Of the softmax over buckets, in half powers of two."""

SHOWN = 2
"""Exemplars in a prompt."""


def draw(known: Mapping[Recipe, float], rng: Random, how: Exemplars = "contrast") -> list[tuple[Recipe, float]]:
    """Return up to SHOWN recipes of `known` (speed-ups; 0 for a failure, never shown), the fastest first."""
    passed = [(recipe, speedup) for recipe, speedup in known.items() if speedup > 0]
    if how == "none" or not passed:
        return []
    if how == "random":
        shown = rng.sample(passed, min(SHOWN, len(passed)))
    else:
        shown = _contrasting(passed, rng)
    return sorted(shown, key=lambda pair: -pair[1])


def _contrasting(passed: Sequence[tuple[Recipe, float]], rng: Random) -> list[tuple[Recipe, float]]:
    buckets: dict[int, list[tuple[Recipe, float]]] = {}
    for pair in passed:
        buckets.setdefault(speed_step(pair[1]), []).append(pair)
    mean = sum(speed_step(speedup) for _, speedup in passed) / len(passed)
    shown: list[tuple[Recipe, float]] = []
    while buckets and len(shown) < SHOWN:
        steps = sorted(buckets)
        step = rng.choices(steps, [math.exp((one - mean) / TEMPERATURE) for one in steps])[0]
        shown.append(rng.choice(buckets.pop(step)))
    return shown


def text(program: Sequence[str], roof: float | None, exemplars: Sequence[tuple[Recipe, float]], places: Places) -> str:
    """Return the prompt: words joined by blanks."""
    shown = [word for recipe, speedup in exemplars for word in ("try", speed_word(speedup), *places.recipe(recipe))]
    return " ".join(["program", roof_word(roof), *program, *shown, "write"])
