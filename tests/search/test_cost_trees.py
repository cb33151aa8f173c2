"""A cost model learned as trees: walked without the library that grew them, asked by a search, and right of what it was taught."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from toy_space import GAIN, toy

from warpwright import run
from warpwright.base import Action
from warpwright.errors import UsageError
from warpwright.learn.policy.recorded import RecordedTask
from warpwright.search.costs import Costs
from warpwright.search.moves import Moves, Recipe
from warpwright.search.trees import NUMBERS, Trees, features

COLLAPSE, PRUNE, COMPILE = (Action(name) for name in ("collapse", "prune", "compile"))
FIRST = 5 + len(NUMBERS)
"""The first feature that counts a technique."""
MODEL = Trees(("collapse", "compile"), 0.1, (((FIRST + 1, 0.5, 1, 2), (-1, 0.0, 0, 0), (-1, -2.0, 0, 0)), ((-1, 0.25, 0, 0),)))
"""Where `compile` is there, less by 2."""


def test_trees_are_walked_and_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert MODEL.gain((COLLAPSE,), 2.0, 1.0) == pytest.approx(math.log(2) + 0.1 + 0.25)
    assert MODEL.gain((COLLAPSE, COMPILE), 2.0, 1.0) == pytest.approx(math.log(2) + 0.1 - 2.0 + 0.25)
    MODEL.save(tmp_path / "trees.json")
    assert Trees.load(tmp_path / "trees.json") == MODEL
    (tmp_path / "other.json").write_text('{"trees": [[1, 2]]}')
    with pytest.raises(UsageError, match="learned cost model"):
        Trees.load(tmp_path / "other.json")


def test_the_command_lines_search_takes_a_file(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "trees.json")
    archive = SimpleNamespace(path=tmp_path / "archive.sqlite")
    assert run.model_search(run.Settings(search="trees", model=str(tmp_path / "trees.json")), archive) == MODEL  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="learned cost model"):
        run.model_search(run.Settings(search="trees"), archive)  # type: ignore[arg-type]


def test_features_know_parameters_and_count_what_nobody_taught() -> None:
    tuned = Action("fuse", "", (("block", 256), ("vector", 4), ("mode", "default")))
    assert features((tuned, COLLAPSE), 4.0, 1.0, ("collapse",)) == [math.log(4), math.log(4), 0.0, 2.0, 1.0, 256.0, 4.0, 0.0, 0.0, 0.0, 1.0]


def test_a_search_asks_them_and_corrects_them() -> None:
    space = replace(toy(), estimate=lambda ir: 1.0 / math.prod(GAIN[name] for name in ir))
    costs = Costs(Moves(space), told=MODEL.gain)
    assert costs.best([(COMPILE,), (PRUNE,)]) == (PRUNE,)
    for _ in range(20):
        costs.learn((COMPILE,), 9.0)
    assert costs.best([(COMPILE,), (PRUNE,)]) == (COMPILE,)
    assert next(MODEL(space, Random(0), 2))


def test_what_was_taught_is_expected() -> None:
    pytest.importorskip("sklearn")
    from warpwright.learn import trees

    tasks = []
    for number in range(30):
        estimates: dict[Recipe, float] = {(): 1e-3, (COLLAPSE,): 5e-4, (COMPILE,): 5e-4, (COLLAPSE, COMPILE): 2.5e-4}
        true = {(): 1.0, (COLLAPSE,): 2.0, (COMPILE,): 0.5, (COLLAPSE, COMPILE): 1.0}  # compile gains a quarter of what is thought
        tasks.append(RecordedTask(f"task{number}", (), None, true, {}, estimates))
    model = trees.learned(tasks)
    for recipe, speedup in tasks[0].speedups.items():
        if recipe:
            assert model.gain(recipe, 1e-3, tasks[0].estimates[recipe]) == pytest.approx(math.log(speedup), abs=0.1)
    with pytest.raises(UsageError, match="measured programs"):
        trees.learned(tasks[:2])
