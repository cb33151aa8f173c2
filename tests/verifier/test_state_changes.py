"""Single tensors of a state change in ways that marks of them do not show: sums, norms and extremes, of a tensor, its rows or its columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import corpus
import pytest

from warpwright.base import to_json
from warpwright.tasks import taskfile
from warpwright.verifier.draw import CHANGES, EXCHANGES, TAKEN, mixed
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original.exchanging import exchange_two
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(8, 6, 3)
        self.register_buffer("table", torch.randint(-127, 128, (32, 16), dtype=torch.int8))

    def forward(self, x):
        return self.layer(x).sum() * self.table.sum()

def get_inputs():
    return [torch.randn(1, 8, 5, 5)]

def get_init_inputs():
    return []
"""

NAMES = ("table", "layer.weight", "layer.bias")  # as a state has them: a module's own first


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    file = tmp_path_factory.mktemp("state") / "task.py"
    file.write_text(TASK)
    return Original(taskfile.describe(file), "cpu", 5, 1 << 30)


def marks(table: torch.Tensor, along: int) -> list[torch.Tensor]:
    """Return what knows no places along a dimension: each line's values in order, of which all sums, norms and extremes follow."""
    return list(table.sort(along).values)


@pytest.mark.parametrize("change", EXCHANGES)
@pytest.mark.parametrize("name", NAMES)
def test_an_exchange_leaves_the_marks_of_its_lines(original: Original, name: str, change: str) -> None:
    before, after = original.state(1), original.state(mixed(NAMES.index(name), change))
    assert all(after[other] is before[other] or torch.equal(after[other], before[other]) for other in NAMES if other != name)
    assert int((after[name] != before[name]).sum()) == 2
    old, new = (tensor.reshape(tensor.shape[0], -1) if tensor.dim() > 1 else tensor.reshape(1, -1) for tensor in (before[name], after[name]))
    along = 1 if change.startswith("row") or len(old) == 1 else 0
    assert all(torch.equal(one, other) for one, other in zip(marks(old, along), marks(new, along), strict=True))
    places: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (torch.argmax, torch.argmin)
    if not change.endswith("ends") and name == "layer.weight" and change == "row":
        assert all(torch.equal(place(old), place(new)) for place in places)


def test_the_other_changes(original: Original) -> None:
    before = original.state(1)["layer.weight"]
    assert int((original.state(mixed(1, "element"))["layer.weight"] != before).sum()) == 1
    assert torch.equal(original.state(mixed(1, "tensor"))["layer.weight"], original.state(2)["layer.weight"])
    assert len({mixed(number, change) for number in range(3) for change in CHANGES}) == 3 * len(CHANGES)


def test_a_parameter_of_one_sign_gets_another_in_one_element(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK.replace("self.layer = nn.Conv2d(8, 6, 3)", "self.layer = nn.Conv2d(8, 6, 3)\n        self.layer.bias.data = torch.rand(6)"))
    positive = Original(taskfile.describe(file), "cpu", 5, 1 << 30)
    assert positive.of_one_sign == ["layer.bias"]
    assert bool((positive.state(1)["layer.bias"] >= 0).all())
    assert int((positive.state(mixed(NAMES.index("layer.bias"), "minus"))["layer.bias"] < 0).sum()) == 1


@pytest.mark.parametrize("in_row", [False, True])
def test_an_exchange_leaves_the_rounded_sum_to_the_bit(in_row: bool) -> None:
    for seed in range(30):  # of single pairs one in three or four changes it
        before = torch.randn(1, 32, 7, generator=torch.Generator().manual_seed(seed))
        after = before.clone()
        assert exchange_two(after, in_row, False, seed) and not torch.equal(after, before) and torch.equal(after.sum(), before.sum())


def test_a_state_that_a_call_left_is_taken_with_two_elements_exchanged(original: Original) -> None:
    left = {name: tensor + 1 if tensor.is_floating_point() else tensor for name, tensor in original.state(1).items()}
    seen = set()
    for seed in range(6):
        name = original.take(left, NAMES[:2], seed)
        taken = original.state(TAKEN)
        seen.add(name)
        assert int((taken[name] != left[name]).sum()) == 2 and sorted(taken[name].flatten().tolist()) == sorted(left[name].flatten().tolist())
        assert all(torch.equal(taken[other], left[other]) for other in NAMES if other != name)
    assert seen == set(NAMES[:2])
    assert original.take({**left, "table": left["table"][:3]}, NAMES[:2], 1) == ""


TIED = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(16, 8), nn.Linear(8, 16, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.table(ids))

def get_inputs():
    return [torch.randint(0, 16, (2, 5))]

def get_init_inputs():
    return []
"""


def test_tied_parameters_stay_tied_and_are_not_taken_for_written_ones(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TIED)
    judge = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": []})
    facts = judge.open(to_json(taskfile.describe(tmp_path / "task.py")), "5", host_only=True)
    assert facts["mutated_state"] == [] and not facts["stateful"] and facts["state_tensors"] == 2
    original = judge.original
    assert original is not None
    for which in (-1, 0, 1, *(mixed(number, change) for number in range(2) for change in ("element", "tensor"))):
        state = original.state(which)
        assert state["table.weight"] is state["head.weight"], "or whoever loads it is left with the last one"
    assert not torch.equal(original.state(0)["table.weight"], original.state(1)["table.weight"])


def test_a_state_that_a_call_left_is_taken_with_its_ties(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TIED)
    original = Original(taskfile.describe(tmp_path / "task.py"), "cpu", 5, 1 << 30)
    for seed in range(4):
        assert original.take({name: tensor.clone() for name, tensor in original.state(1).items()}, ["table.weight", "head.weight"], seed)
        taken = original.state(TAKEN)
        assert taken["table.weight"] is taken["head.weight"] and int((taken["table.weight"] != original.state(1)["table.weight"]).sum()) == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_nudge_is_small_and_moves_all_of_a_real_tensor(original: Original, name: str) -> None:
    before, after = (state[name].double() for state in (original.state(1), original.state(mixed(NAMES.index(name), "nudge"))))
    moved = (after - before).abs()
    if name == "table":
        assert moved.sum() == 1 and before.min() <= after.min() and after.max() <= before.max()
    else:
        assert bool((moved > 0).all()) and float((moved / before.abs()).max()) <= 2**-14


def test_counters_of_calls_begin_anywhere() -> None:
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(corpus.task("cumulative_norm")), "7", False)
    original = judging._original
    counts = [int(original.state(which)["norm.num_batches_tracked"]) for which in range(3)]
    assert original.counters == ("norm.num_batches_tracked",) and len({0, *counts}) == 4 and max(counts) > 64
