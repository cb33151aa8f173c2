"""What each action of a recipe is worth: the recipe without it is measured."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from warpwright.archive import Archive
from warpwright.base import Action, Budget, Record
from warpwright.errors import NotApplicable
from warpwright.loop.running import Run, Stop
from warpwright.search import Recipe
from warpwright.space import Evaluator, Space


@dataclass(frozen=True)
class Ablation:
    """What one action of a recipe is worth."""

    action: Action
    without: Record
    """The record of the recipe without it, and without what depended on it."""
    dropped: tuple[Action, ...]
    """Those dependents."""
    gain: float
    """Speed-up with it over speed-up without it; infinite when nothing correct was left."""


def ablate(
    record: Record, space: Space[Any], evaluator: Evaluator, archive: Archive | None = None, seconds: float | None = None,
    known: Iterable[Record] = (),
) -> list[Ablation]:  # fmt: skip
    """Take each action out of the recipe of `record` in turn and measure the loss; stop early after `seconds`. What is `known` is not measured."""
    began = time.monotonic()
    run = Run(record.task, space, evaluator, archive, Budget(None))
    run.known.update((other.candidate.key, other) for other in known)
    ablations: list[Ablation] = []
    for index, action in enumerate(record.candidate.actions):
        if seconds is not None and time.monotonic() - began > seconds:
            break
        recipe, dropped = _without(space, record.candidate.actions, index)
        try:
            [without] = run.answer([recipe], faster=False)
        except Stop:  # nothing can be judged any more
            break
        gain = record.speedup / without.speedup if without.speedup else float("inf")
        ablations.append(Ablation(action, without, dropped, gain))
    return ablations


def _without(space: Space[Any], recipe: Recipe, index: int) -> tuple[Recipe, tuple[Action, ...]]:
    """Return `recipe` without the action at `index` and without the later ones that are not legal any more; and those."""
    kept, dropped = recipe[:index], []
    ir = space.replay(kept)
    for action in recipe[index + 1 :]:
        try:
            ir = space.apply(ir, action)
        except NotApplicable:
            dropped.append(action)
        else:
            kept = (*kept, action)
    return kept, tuple(dropped)
