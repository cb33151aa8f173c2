"""What a policy has taken to: in what share of its first answers to a task a technique stands, where it is to be had at all."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.learn.policy.recorded import RecordedTask
from warpwright.learn.policy.stages import sampled
from warpwright.policy.model import Policy
from warpwright.search.moves import Recipe


def answers(policy: Policy, task: RecordedTask, count: int, seed: int) -> list[Recipe]:
    """Return first answers to a task, with no exemplar but the original."""
    return sampled(policy, [task] * count, 0, f"{seed} habits")


def offered(task: RecordedTask) -> set[str]:
    """Return the techniques of a task's recorded recipes."""
    return {action.technique for recipe in task.speedups for action in recipe}


def stands_in(name: str, recipes: Sequence[Recipe]) -> float:
    """Return in what share of some recipes a technique stands."""
    return sum(any(action.technique == name for action in recipe) for recipe in recipes) / len(recipes)


def winner(task: RecordedTask) -> Recipe:
    """Return the fastest recorded recipe, of equals the shortest."""
    return max(task.speedups, key=lambda recipe: (task.speedups[recipe], -len(recipe)))
