"""Regret, noise and ranking from recorded times: what is counted, on rows made up."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.kernelbench import choices
from benchmarks.kernelbench.choices import Timed


def first(task: str, recipe: str, ms: float, error: float = 1.0, table: str = "first") -> dict[str, Any]:
    return {"table": table, "task": task, "recipe": recipe, "ours ms": ms, "eager ms": 4.0, "compile ms": 3.0, "errors": {"given": error}}


WHOLE = [
    first("a", "x()", 2.0), first("a", "x(); fuse_cuda(calls=1)", 1.0),
    first("b", "x()", 0.5, error=9.0), first("b", "y()", 2.0),  # the first is not right: its user keeps the best baseline, 3.0
    first("c", "x()", 1.0), first("d", "x()", 1.0, error=9.0), first("d", "y()", 1.0, error=9.0),
    first("a", "x()", 1.0, table="tf32: first"), first("a", "y()", 3.0, table="tf32: first"),
]  # fmt: skip
BESIDE = [
    {"table": "beside", "task": "L1-1", "kept ms": {"eager": 0.1}, "theirs ms": 0.2, "wrong": {},
     "ours ms": {"k(); launch_plan()": 0.02, "k()": 0.04, "gone()": None}},
    {"table": "again", "task": "L1-1", "kept ms": {"eager": 0.15}, "theirs ms": 0.1, "wrong": {}, "ours ms": {"k()": 0.03}},
    {"table": "beside", "task": "L1-2", "theirs": "failed"},
]  # fmt: skip


def test_regret_is_of_the_first_over_the_best_that_is_right() -> None:
    assert choices.regrets(choices.timed(WHOLE, BESIDE)) == {("strict", "a"): 2.0, ("strict", "b"): 1.5, ("tf32", "a"): 1.0, ("cuda-l1", "L1-1"): 1.0}
    text = choices.regret_table(choices.timed(WHOLE, BESIDE))
    assert "| strict | 2 | 0 | 0 | 1.732x |" in text and "a 2.00x, b 1.50x" in text and "| tf32 | 1 | 1 | 1 | 1.000x |" in text


def test_kinds_of_second_proposals() -> None:
    assert choices.differences("mul(m_1); x(p=1); y()", "mul(m_7); x(p=2); y()") == ("x(p=1)", "x(p=2)")
    text = choices.seconds_table(choices.timed(WHOLE, BESIDE), least=1)
    assert "| nothing | fuse_cuda(calls=1) | 1 | 1 |" in text and "| launch_plan | nothing | 1 | 0 |" in text


def test_plans_and_repeats_are_pairs_of_the_same_program() -> None:
    programs = choices.timed(WHOLE, BESIDE)
    assert choices.plans(BESIDE, programs) == [("cuda-l1 beside", "L1-1", 0.02, 0.04)]
    assert sorted(choices.repeats(BESIDE)) == [("L1-1", "eager", 0.1, 0.15), ("L1-1", "k()", 0.04, 0.03), ("L1-1", "theirs", 0.2, 0.1)]
    assert "| below 0.2 ms | 2 | 1.42x |" in choices.repeats_table(BESIDE)


def test_how_estimates_rank() -> None:
    assert choices.ranks([3.0, 1.0, 3.0, 9.0]) == [1.5, 0.0, 1.5, 3.0]
    a, b, near = (Timed("strict", "a", name, ms, True, 3.0) for name, ms in (("x", 1.0), ("y", 2.0), ("z", 1.04)))
    assert choices.ordered([(a, 5.0), (b, 7.0), (near, 9.0)]) == [True, False]  # a and near are no order
    assert choices.ordered([(a, 5.0), (b, 5.0)]) == [False], "a tie ranks nothing"
    rows = [{"table": "estimates", "track": "strict", "task": "a", "us": [5.0, None]}]
    assert choices.read_estimates(rows, choices.timed(WHOLE, [])) == {("strict", "a"): {"x()": 5.0}}
    with pytest.raises(ValueError, match="argument 2 is"):  # rows that are not of these programs
        choices.read_estimates([{**rows[0], "us": [1.0]}], choices.timed(WHOLE, []))


def test_a_replay_says_what_was_never_timed() -> None:
    programs = choices.timed(WHOLE, [])
    text = choices.replay_table(programs, {("strict", "a"): ["x(); fuse_cuda(calls=1)"], ("strict", "b"): ["new()", "y()"]})
    assert "| strict | 2 | 0 | 1 | 1 | 1, 0, 0 | 2.00x |" in text


def test_a_third_of_the_tasks_is_held_out_by_a_seed() -> None:
    names = [f"t{i}" for i in range(31)]
    assert len(choices.held_out(names)) == 10 and choices.held_out(names) == choices.held_out(names[::-1]) != choices.held_out(names, seed=1)
