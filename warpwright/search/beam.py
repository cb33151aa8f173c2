"""Beam search: extend the WIDTH best recipes of one length by every legal action, keep the WIDTH best, and so on."""

from __future__ import annotations

from random import Random
from typing import Any

from warpwright.search.moves import Moves, Proposer, Recipe, ask, distinct
from warpwright.space import Space

WIDTH = 4
RESTART_STEPS = 4


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Search from the original; when no beam can be extended, or none gains for two lengths, from WIDTH random recipes."""
    moves = Moves(space)
    yield [()]
    beams: list[Recipe] = [()]
    while True:
        best, idle = 0.0, 0
        while idle < 2:
            longer = distinct(child for recipe in beams for child in moves.additions(recipe))
            if not longer:
                break
            records = yield from ask(longer, batch)
            ranked = sorted(zip(records, longer, strict=True), key=lambda pair: -pair[0].speedup)
            beams = [recipe for _, recipe in ranked[:WIDTH]]
            idle = 0 if ranked[0][0].speedup > best else idle + 1
            best = max(best, ranked[0][0].speedup)
        beams = distinct(moves.walk(rng, rng.randint(0, RESTART_STEPS)) for _ in range(WIDTH))
        yield from ask(beams, batch)
