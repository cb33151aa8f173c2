"""From a recipe to a program, or to a record of why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from warpwright.base import Candidate, Record, Source, Task, failed, target_of
from warpwright.search import Recipe
from warpwright.space import Evaluator, Space


@dataclass(frozen=True)
class Failed:
    """A recipe that gave no program, and why."""

    recipe: Recipe
    error: Exception

    def candidate(self, device: str) -> Candidate:
        """Return a stand-in for the program: its text names the recipe, so that its key is the recipe's own."""
        text = f"# no program: {', '.join(map(str, self.recipe))}\n"
        return Candidate(Source("python", (("optimized.py", text),)), target_of(device), self.recipe, proposer="search")

    def record(self, task: Task, evaluator: Evaluator) -> Record:
        """Return the recipe's record."""
        return replace(failed(task, self.candidate(evaluator.device), evaluator.device, self.error), versions=evaluator.versions)


def make_candidate(space: Space[Any], recipe: Recipe) -> Candidate | Failed:
    """Return the program of `recipe`, or why there is none."""
    try:
        return space.candidate(recipe)
    except Exception as error:  # a rewrite that fails is data, as a program that fails is
        return Failed(recipe, error)
