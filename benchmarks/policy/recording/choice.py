"""Which recipes of a task are recorded: what several searches propose while the cost model answers, and every beginning of these, so that a search
that is answered from the records later goes over recorded ground at each step. Recipes that make the same program are one program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from random import Random
from types import SimpleNamespace
from typing import Any

TURNS: Mapping[str, int] = {"evolve": 96, "random": 48, "ladder": 12, "greedy": 24}
"""Proposals of each search from which the recipes of up to ORDINARY programs are taken, in turns; of more programs in proportion."""

ORDINARY = 44

LEFT_OUT = ("compile", "direct_convolution", "launch_plan", "fused_product", "implicit_convolution")
"""Techniques whose programs take seconds to build, and three that came after the recordings which others are compared with."""


@dataclass
class Chosen:
    """Recipes by the program that they make; the original is the program 0 and the recipe ()."""

    texts: list[str]
    recipes: dict[Any, int]
    actions: dict[str, int] = field(default_factory=dict)

    def numbered(self, recipe: Sequence[Any]) -> list[int]:
        """Return a recipe as the numbers of its actions."""
        return [self.actions.setdefault(str(action), len(self.actions)) for action in recipe]


def chosen(space: Any, count: int) -> Chosen:
    """Return recipes of up to `count` programs besides the original, in the order in which they are proposed."""
    start = space.candidate(()).source.text
    found, numbers = Chosen([start], {(): 0}), {body(start): 0}
    more = max(1.0, count / ORDINARY)
    lines = [list(_proposed(name, space, int(most * more))) for name, most in TURNS.items()]
    for recipe in (recipe for turn in zip_longest(*lines) for recipe in turn if recipe):
        for length in range(1, len(recipe) + 1):
            part = recipe[:length]
            if part in found.recipes:
                continue
            text = space.candidate(part).source.text
            if body(text) not in numbers:
                if len(found.texts) > count:
                    break
                numbers[body(text)] = len(found.texts)
                found.texts.append(text)
            found.recipes[part] = numbers[body(text)]
    return found


def _proposed(name: str, space: Any, most: int) -> Iterator[Any]:
    from warpwright.search import SEARCHES

    start = space.estimate(space.start) or 1.0
    proposer = SEARCHES[name](space, Random(0), 1)
    try:
        asked, seen = next(proposer), 0
        while seen < most:
            yield from asked
            seen += len(asked)
            asked = proposer.send([SimpleNamespace(status="ok", speedup=_estimated(space, start, one)) for one in asked])  # type: ignore[misc]
    except StopIteration:
        pass
    finally:
        proposer.close()


def _estimated(space: Any, start: float, recipe: Any) -> float:
    seconds = space.estimate(space.replay(recipe))
    return float(start / seconds) if seconds else 1.0


def body(text: str) -> str:
    """Return a program's text without its comments, which name the recipe."""
    return re.sub(r"(?m)^\s*#.*\n", "", text)
