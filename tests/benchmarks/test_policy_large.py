"""Spaces larger than the budget: pairs of recorded programs, and what is said of a policy there and in live runs."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from random import Random

import pytest

from benchmarks.policy.live import evaluated
from benchmarks.policy.recording import records
from benchmarks.policy.trained import large, pairs
from warpwright.base import Action
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.search.moves import Recipe

FUSE, GRAPH, FOLD = Action("fuse", "a", (("block", 128),)), Action("graph"), Action("fold", "b")


def program(name: str, speedups: dict[Recipe, float], roof: float | None = 0.5) -> RecordedTask:
    words = ("@a", "relu", "e20", "@b", "linear")
    return RecordedTask(name, words, roof, {(): 1.0, **speedups}, {}, {recipe: 1.0 + len(recipe) for recipe in [(), *speedups]})


ONE = pairs.Part(program("one", {(FUSE,): 2.0, (FUSE, GRAPH): 4.0, (GRAPH,): 0.0}), 8.0)
OTHER = pairs.Part(program("other", {(FOLD,): 2.0, (FUSE,): 1.0}, 1.0), 4.0)


def test_a_pair_takes_the_time_of_both_and_fails_where_one_does() -> None:
    both = pairs.pair(ONE, OTHER)
    assert len(both.speedups) == 4 * 3 and both.roof == pytest.approx((8 * 0.5 + 4 * 1.0) / 12)
    at = {"; ".join(map(str, recipe)): speedup for recipe, speedup in both.speedups.items()}
    assert at[""] == 1.0 and at["fuse(first.a, block=128); graph(first); fold(second.b)"] == pytest.approx(12 / (2 + 2))
    assert at["fold(second.b)"] == pytest.approx(12 / (8 + 2)) and at["graph(first); fold(second.b)"] == 0.0
    assert both.estimates[(*pairs.placed((FUSE,), "first"), *pairs.placed((FOLD,), "second"))] == 4.0
    assert both.best == pytest.approx(3.0) and large.programs(both) == len({*at.values()} - {0.0}) + 3


def test_a_pair_is_read_part_by_part_and_each_action_says_at_which_it_is_meant() -> None:
    asking = pairs.pair(ONE, OTHER).asking()
    assert asking.program[:2] == ("part", "@0") and asking.program.count("part") == 2
    assert set(asking.writing.allowed([])) == {"fuse", "graph", "fold"}
    placed = [words[1] for words in asking.writing.actions(()) if words[0] == "fuse"]
    assert len(placed) == len(set(placed)) == 2  # the first's and the second's


def test_a_sample_of_a_pair_holds_every_beginning_of_its_recipes() -> None:
    both = pairs.pair(ONE, OTHER)
    found = list(pairs.sampled(both, 5, Random(0)))
    recipes = {row.recipe for row in found}
    assert found[0].recipe == () and all(recipe[:length] in recipes for recipe in recipes for length in range(len(recipe)))
    [task] = tasks_of(found)
    assert all(task.speedups[recipe] == both.speedups[recipe] for recipe in task.speedups)


def test_gains_are_ratios_of_what_two_have_on_the_same_task() -> None:
    found = {
        "policy": {"t": {"16": math.log(0.9)}, "u": {"16": math.log(0.8)}},
        "evolve": {"t": {"16": math.log(0.6), "256": 0.0}, "u": {"16": math.log(0.8), "256": math.log(0.8)}},
    }
    assert [math.exp(one) for one in large.gains(found, "evolve", 16, 16)] == pytest.approx([1.5, 1.0])
    assert [math.exp(one) for one in large.gains(found, "evolve", 16, 256)] == pytest.approx([0.9, 1.0])
    assert large.cell([0.0, 0.0, 0.0]) == "1.000 [1.000, 1.000]"


def test_live_runs_are_compared_at_what_all_of_them_came_to() -> None:
    def record(search: str, speedup: float) -> dict[str, object]:
        return {"row": "record", "task": "t", "search": search, "speedup": speedup}

    lines = [record("policy", 2.0), record("policy", 9.0), record("evolve", 0.0), {"row": "run", "task": "t", "search": "policy"}]
    assert evaluated.table(lines) == [{"table": "live", "task": "t", "evaluations": 1, "policy, best": "2.00x", "evolve, best": "1.00x"}]


def test_a_recording_may_be_compressed_and_its_original_must_have_kept_its_time(tmp_path: Path) -> None:
    line = {"task": "a", "eager us": 100.0, "again us": 125.0, "programs": [["ok", 100.0], ["ok", 50.0]]}
    (tmp_path / "tasks.jsonl.gz").write_bytes(gzip.compress(json.dumps(line).encode()))
    assert records.lines_of([tmp_path / "tasks.jsonl.gz"]) == [line]
    assert large.drift(line) == pytest.approx(0.25) and large.drift({**line, "again us": None}) == 0.0
