"""Growing the trees of a learned cost model (`search/trees.py`) from collected rows: what programs gained beyond what the cost model says.

Each task counts as one, however many of its recipes were measured; what did not pass, and what has no estimate, teaches nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warpwright.errors import MissingExtra, UsageError
from warpwright.learn.policy.recorded import RecordedTask
from warpwright.search.moves import Recipe
from warpwright.search.trees import Node, Trees, features

FORM = {
    "n_estimators": 200, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 20, "max_features": 0.5, "subsample": 0.8, "random_state": 0
}  # fmt: skip
"""Of scikit-learn's GradientBoostingRegressor: few leaves, many samples in each, since rows of a task are alike."""


def learned(tasks: Sequence[RecordedTask]) -> Trees:
    """Return the model that the tasks teach; raise UsageError where they have too few programs with estimates."""
    try:
        from sklearn.ensemble import GradientBoostingRegressor
    except ImportError as error:
        raise MissingExtra("scikit-learn", "trees", "a learned cost model") from error
    known = [(task, _known(task)) for task in tasks]
    lines = [(task, recipe) for task, recipes in known for recipe in recipes]
    if len(lines) < 2 * FORM["min_samples_leaf"]:
        raise UsageError(f"expected {2 * FORM['min_samples_leaf']:g} measured programs with estimates, saw {len(lines)}", "collect more tasks")
    techniques = tuple(sorted({action.technique for _, recipe in lines for action in recipe}))
    given = [features(recipe, task.estimates[()], task.estimates[recipe], techniques) for task, recipe in lines]
    wanted = [math.log(task.speedups[recipe]) - asked[0] for (task, recipe), asked in zip(lines, given, strict=True)]
    weights = [len(lines) / len(tasks) / len(recipes) for _, recipes in known for _ in recipes]
    model = GradientBoostingRegressor(**FORM).fit(given, wanted, sample_weight=weights)
    base = float(model.init_.constant_.ravel()[0])
    return Trees(techniques, base, tuple(_nodes(tree.tree_) for tree in model.estimators_.ravel()))


def _known(task: RecordedTask) -> list[Recipe]:
    """Return the recipes that passed and have an estimate."""
    if task.estimates.get((), 0.0) <= 0:
        return []
    return [recipe for recipe, speedup in task.speedups.items() if recipe and speedup > 0 and task.estimates.get(recipe, 0.0) > 0]


def _nodes(tree: Any) -> tuple[Node, ...]:
    """Return the nodes of one tree of scikit-learn's."""
    found: list[Node] = []
    for feature, threshold, low, high, value in zip(tree.feature, tree.threshold, tree.children_left, tree.children_right, tree.value, strict=True):
        leaf = low < 0
        found.append((-1, FORM["learning_rate"] * float(value[0][0]), 0, 0) if leaf else (int(feature), float(threshold), int(low), int(high)))
    return tuple(found)
