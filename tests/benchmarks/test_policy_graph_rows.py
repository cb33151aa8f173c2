"""Action data of the graph domain: which recipes are recorded, how lines become rows, and whose turn it is on the GPU."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.policy.recording import choice, probe, records
from warpwright.learn.policy import random_tasks
from warpwright.learn.policy.recorded import tasks_of
from warpwright.run import Settings, open_space

LINE: dict[str, Any] = {
    "task": "a", "key": "k", "device": "gpu", "words": ["@x", "input", "e20"], "moved": 2_000_000, "actions": ["one()", "two(at)"],
    "recipes": [[0], [1, 0], [1, 0, 1], [2, 1], [3, 1, 0]], "estimated us": [9.0, 5.0, 5.0, 4.0, 1.0],
    "programs": [["ok", 10.0], ["ok", 4.0], ["error 7 of the original's", None]],
}  # fmt: skip


def test_recipes_of_one_program_share_its_result_and_what_was_not_reached_is_left_out() -> None:
    rows = list(records.rows_of(LINE, 1000.0))
    assert [(row.recipe, row.status, row.speedup) for row in rows] == [
        ((), "ok", 1.0), (("one()",), "ok", 2.5), (("one()", "two(at)"), "ok", 2.5), (("two(at)",), "wrong", 0.0),
    ]  # fmt: skip
    assert rows[0].roof == 0.2
    [task] = tasks_of(rows)
    assert task.best == 2.5 and sorted(task.estimates.values()) == pytest.approx([4e-6, 5e-6, 5e-6, 9e-6])


def test_the_closed_space_answers_with_the_estimate_that_was_recorded() -> None:
    [task] = tasks_of(records.rows_of(LINE, 1000.0))
    space = task.space()
    assert space.estimate is not None
    [recipe] = [one for one in task.speedups if len(one) == 2]
    assert space.estimate(space.replay(recipe)) == pytest.approx(5e-6) and task.space().estimate is not None


def test_every_beginning_of_a_recipe_is_recorded_and_no_program_twice(tmp_path: Path) -> None:
    [file] = random_tasks.write(tmp_path, 1, 2, "large")
    space = open_space(Settings(device="cuda").describe(file), "cuda")
    found = choice.chosen(space, 8)
    assert 2 < len(found.texts) <= 9
    assert len({choice.body(text) for text in found.texts}) == len(found.texts)
    assert all(recipe[:length] in found.recipes for recipe in found.recipes for length in range(len(recipe)))
    assert set(found.recipes.values()) == set(range(len(found.texts)))


def test_large_programs_run_and_are_of_a_size_that_a_gpu_holds_many_of() -> None:
    for number in range(60):
        names: dict[str, Any] = {}
        exec(random_tasks.text(number, "large"), names)
        with torch.device("meta"):
            inputs, model = names["get_inputs"](), names["Model"]()
            seen = [*inputs, model(*inputs)]
        assert all(x.nbytes <= 1 << 28 for x in seen)


def test_one_times_alone(tmp_path: Path) -> None:
    turns, order, checking = probe.Turns(tmp_path), list[str](), threading.Barrier(2)

    def time_it() -> None:
        checking.wait()
        with turns.timing():
            order.append("timed")

    thread = threading.Thread(target=time_it)
    thread.start()
    with turns.checking():
        checking.wait()
        thread.join(0.1)
        assert thread.is_alive()
        order.append("checked")
    thread.join(10)
    assert order == ["checked", "timed"]


def test_a_program_that_errs_is_told_and_one_that_is_right_passes() -> None:
    model, inputs = torch.nn.Softmax(dim=1), [torch.rand(8, 32)]
    truth = probe.Truth(model, inputs)
    assert truth.wrong(torch.nn.Softmax(dim=1)) == ""
    assert truth.wrong(torch.nn.Softmax(dim=0)).startswith("error")
    assert truth.wrong(torch.nn.Flatten(0)) == "shapes or NaN"


class Stale(torch.nn.Linear):
    """Keeps the weights of its first call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "kept"):
            self.kept = self.weight.detach().clone()
        return torch.nn.functional.linear(x, self.kept, self.bias)


def test_a_program_that_keeps_a_state_which_has_changed_is_wrong() -> None:
    """As a CUDA graph on an H200 was, which this probe had called right."""
    truth = probe.Truth(torch.nn.Linear(8, 8), [torch.rand(4, 8)])
    assert truth.wrong(torch.nn.Linear(8, 8)) == "" and truth.wrong(Stale(8, 8)).startswith("error")
    stale = Stale(8, 8)
    stale.load_state_dict(truth.state)
    stale(torch.rand(4, 8))
    assert truth.wrong(stale).startswith("error")
