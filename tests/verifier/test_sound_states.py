"""States that the original does not take are drawn anew, and no call is judged where it gives no sound answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.base import Case, Source, to_json
from warpwright.tasks import taskfile
from warpwright.verifier.draw import mixed
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original.reference import Original
from warpwright.verifier.judge_client import TIMED_STATE, Judge
from warpwright.verifier.verify import build, verify
from warpwright.workers.sandbox import Worker
from warpwright.workers.tensors import packing

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))
        self.register_buffer("order", torch.tensor([3, 1, 0, 2, 7, 6, 5, 4]))

    def forward(self, x):
        assert {check}
        return x[:, self.order] * self.weight

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


def opened(folder: Path, check: str, secret: str) -> Original:
    (folder / "task.py").write_text(TASK.format(check=check))
    judging = JudgeWorker({"device": "cpu", "exchange": str(folder), "isolation": {}})
    judging.open(to_json(taskfile.describe(folder / "task.py")), secret, False)
    return judging._original


def test_shuffled_integers_that_a_program_refuses_are_drawn_anew(tmp_path: Path) -> None:
    found = [opened(tmp_path, "self.order[0] < 7", secret) for secret in "123456"]
    assert all(one.strength == 2.0 for one in found) and {one.drawn for one in found} > {0}
    for one in found:
        for which in (0, 1, 2):
            one.run_own(one.inputs(Case("nominal", 5)), which)
            assert not torch.equal(one.state(which)["order"], one.initial["order"])


def test_where_it_takes_no_other_order_they_stay(tmp_path: Path) -> None:
    found = opened(tmp_path, "self.order[:3].tolist() == [3, 1, 0]", "7")
    assert found.strength == 1.0 and torch.equal(found.state(1)["order"], found.initial["order"])
    assert not torch.equal(found.state(1)["weight"], found.initial["weight"])


@pytest.mark.parametrize("which", [1, 2])
def test_a_state_in_which_alone_it_is_not_sound_is_drawn_anew(which: int, tmp_path: Path) -> None:
    """Of a state with a weight above a bound there would be no call: a program that keeps its first weights would pass."""
    drawn, plain = set(), TASK.replace("torch.randn(8)", "torch.linspace(-1, 1, 8)")
    plain = plain.replace("torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])", "torch.arange(8)")
    (tmp_path / "task.py").write_text(plain.format(check="float(self.weight.max()) < 1.1"))
    for secret in "1234567":
        judging = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": {}})
        judging.open(to_json(taskfile.describe(tmp_path / "task.py")), secret, False)
        case = Case("nominal", 3)
        if judging._problem(case, 0):
            continue
        drawn.add(judging.settle(which, to_json(case))["redrawn"])
        assert not judging._problem(case, which) and not torch.equal(judging._original.state(which)["weight"], judging._original.state(0)["weight"])
    assert len(drawn) > 1


BOUNDED = TASK.replace("torch.randn(8)", "torch.linspace(-1, 1, 8)").replace("torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])", "torch.arange(8)")
BOUNDED = BOUNDED.format(check="float(self.weight.max()) < 1.1")
INFINITE = BOUNDED.replace("assert float(self.weight.max()) < 1.1", "x = x / (self.weight.max() < 1.1)")
"""Does not raise beyond the bound: it gives no finite numbers there."""


@pytest.mark.parametrize("which", [1, 2])
def test_a_state_that_is_drawn_anew_is_shipped_anew(which: int, tmp_path: Path) -> None:
    """Baselines are given the timed state while they are built, which may be before it is asked whether the original is sound there."""
    (tmp_path / "task.py").write_text(BOUNDED)
    drawn, case, shipped = set(), Case("nominal", 3), (which, mixed(0, "nudge"))
    for secret in "1234567":
        judging = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": {}})
        judging.open(to_json(taskfile.describe(tmp_path / "task.py")), secret, False)
        for number in shipped:
            judging.state(number)
        if not judging._problem(case, 0):
            drawn.add(judging.settle(which, to_json(case))["redrawn"])
        for number in shipped:
            taken = packing.taken(judging.state(number)["state"], "cpu")
            assert all(torch.equal(tensor, taken[name]) for name, tensor in judging._original.state(number).items())
    assert len(drawn) > 1


def test_a_baseline_that_was_built_before_its_state_was_drawn_anew_is_right(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(INFINITE)
    task, source = taskfile.describe(tmp_path / "task.py"), Source("python", (("optimized.py", INFINITE.replace("class Model", "class ModelNew")),))
    with Judge(task, secret=0) as judge, Worker("baseline") as worker:
        secret = 0
        while [which for which in (0, TIMED_STATE) if not judge.viable(judge.warm_up, which)] != [TIMED_STATE]:
            secret += 1
            judge.begin(secret)
        _, rejected = build(judge, worker, "original", source)
        assert rejected is None, rejected
        verdict = verify(judge, worker, "original", task)
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    ("sound", "expected"),
    [
        ({(1, 1), (1, 0)}, 1),
        ({(1, 0), (3, 1)}, 3),  # another draw
        ({(1, 0)}, None),
        (set(), 1),  # nowhere is it exact to 1 %: its values are compared all the same
    ],
)
def test_a_call_is_made_where_the_answer_is_sound(sound: set[tuple[int, int]], expected: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = object.__new__(Judge)
    monkeypatch.setattr(judge, "viable", lambda case, which: (case.seed, which) in sound, raising=False)
    monkeypatch.setattr(judge, "_random", type("Dice", (), {"randrange": lambda self, most: 3})(), raising=False)
    found = judge.sound(Case("nominal", 1), 1)
    assert (found and found.seed) == expected


FACTORS = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.cholesky(x)

def get_inputs():
    a = torch.randn(16, 6, 6)
    return [a @ a.mT + 6 * torch.eye(6)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("name", ["large", "small"])
def test_where_the_first_rows_cannot_be_alike_they_are_like_the_others(name: str, tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(FACTORS)
    judging = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": {}})
    judging.open(to_json(taskfile.describe(tmp_path / "task.py")), "7", False)
    reply = judging.viable(to_json(Case(name, 3)), 0)
    assert not reply["problem"] and reply["params"] == {"mild": 1}
    assert "raises" in judging.viable(to_json(Case("negated", 3)), 0)["problem"]


MASKED = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(7, 8)

    def forward(self, ids):
        word = self.words(ids)
        return torch.softmax(word @ word.t() - {mask}, 1) @ word  # of 1e10 float32 keeps no score, float64 keeps all

def get_inputs():
    return [torch.arange(20) % 7]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("mask", "scored"), [("1.0", True), ("1e10", False)])
def test_a_task_without_a_sound_case_says_so_where_its_own_inputs_never_vary(tmp_path: Path, mask: str, scored: bool) -> None:
    """Another draw of the task's own inputs is the same: its answer says nothing of whether the output depends on them."""
    file = tmp_path / "task.py"
    file.write_text(MASKED.format(mask=mask))
    with Judge(taskfile.describe(file)) as judge:
        certificate = judge.certify()
    assert certificate.scored == scored
    assert scored or certificate.reason.startswith("no case but that of the task's own inputs is sound: the original is itself off by more than 1 %")
