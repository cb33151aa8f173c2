"""A cost model learned from measured programs, as gradient-boosted trees: it ranks what was not tried yet, on programs that it never saw.

    log(speed-up) = log(estimate of the original / estimate of the recipe) + what the trees say of the recipe

`learn/trees.py` grows them from collected rows, by scikit-learn; here they are numbers in a file, read and walked without it. What a search measures
itself corrects them further (`costs.py`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from warpwright.errors import UsageError
from warpwright.search import evolve
from warpwright.search.moves import Proposer, Recipe
from warpwright.space import Space

NUMBERS = ("block", "vector", "unroll", "calls", "chunk")
"""Parameters of actions that a tree may ask about; of several actions the last one's."""

Node = tuple[int, float, int, int]
"""Feature, threshold, and the nodes for features up to it and beyond; a leaf has feature -1 and its value as threshold."""


@dataclass(frozen=True)
class Trees:
    """The learned model, as a search over a space: evolution in which the recipe of which most is expected is proposed first."""

    techniques: tuple[str, ...]
    """Whose counts are the last features."""
    base: float
    """What is expected before any tree is asked."""
    trees: tuple[tuple[Node, ...], ...]

    __name__ = "trees"

    def __call__(self, space: Space[Any], rng: Random, batch: int) -> Proposer:
        """Search."""
        return evolve.ranked(space, rng, batch, self.gain)

    def gain(self, recipe: Recipe, start: float, seconds: float) -> float:
        """Return the log of the speed-up that is expected of a recipe, by the estimates of the original and of itself."""
        asked = features(recipe, start, seconds, self.techniques)
        return asked[0] + self.base + sum(_leaf(tree, asked) for tree in self.trees)

    def save(self, path: Path) -> None:
        """Write the file."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> Trees:
        """Read a file; raise UsageError where it is none."""
        try:
            read = json.loads(path.read_text())
            trees = tuple(tuple((int(f), float(t), int(low), int(high)) for f, t, low, high in tree) for tree in read["trees"])
            return cls(tuple(map(str, read["techniques"])), float(read["base"]), trees)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"expected a file of a learned cost model, saw {path}: {error}", "warpwright train --trees ROWS --out FILE") from None


def features(recipe: Recipe, start: float, seconds: float, techniques: tuple[str, ...]) -> list[float]:
    """Return what a tree may ask about: estimates, length, techniques that nobody knew, parameters, and how often each technique is there."""
    counts = Counter(action.technique for action in recipe)
    unknown = sum(count for name, count in counts.items() if name not in techniques)
    params = {name: value for action in recipe for name, value in action.params}
    numbers = [float(value) if isinstance(value := params.get(name, 0), int | float) else 0.0 for name in NUMBERS]
    times = [math.log(start / seconds), math.log(start), math.log(seconds)]
    return [*times, float(len(recipe)), float(unknown), *numbers, *(float(counts[name]) for name in techniques)]


def _leaf(tree: tuple[Node, ...], asked: list[float]) -> float:
    feature, value, low, high = tree[0]
    while feature >= 0:
        feature, value, low, high = tree[low if asked[feature] <= value else high]
    return value
