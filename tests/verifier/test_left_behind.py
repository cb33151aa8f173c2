"""Where rounding decides what a call leaves in a buffer, either way is right; elsewhere nothing is excused."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from warpwright.base import Case  # noqa: E402
from warpwright.tasks import taskfile  # noqa: E402
from warpwright.verifier.judge.judgement import Judgement  # noqa: E402
from warpwright.verifier.judge.left_behind import is_excused  # noqa: E402
from warpwright.verifier.judge.original.reference import Original  # noqa: E402

NEAREST = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.arange(8.0))
        self.register_buffer("sizes", torch.ones(8))
        self.register_buffer("counts", torch.zeros(8, dtype=torch.int64))

    def forward(self, x):
        near = (x[:, None] * 3 / 3 - self.codes * 1.0).abs().argmin(1)
        taken = torch.nn.functional.one_hot(near, 8).sum(0)
        self.sizes.mul_(0.9).add_(taken, alpha=0.1)
        self.counts.add_(taken)
        return near


def get_inputs():
    return [torch.cat([torch.rand(31) * 8, torch.tensor([3.5])])]


def get_init_inputs():
    return []
"""


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Judgement, Original]:
    (tmp_path / "task.py").write_text(NEAREST)
    original = Original(taskfile.describe(tmp_path / "task.py"), "cpu", 5, 1 << 30)
    original.mutates_state, original.strength = True, 0.0
    return Judgement(original), original


def test_a_row_between_two_codes_may_be_counted_at_either(judged: tuple[Judgement, Original]) -> None:
    judgement, original = judged
    case = Case("nominal", 3)
    after = {name: own.clone() for name, (own, _) in original.answer(case, 0).after.items()}
    assert not judgement.judge_state(after, case, 0)["check"]
    taken, other = (3, 4) if int(original.model(*original.inputs(case))[-1]) == 3 else (4, 3)
    tied = {name: tensor.clone() for name, tensor in after.items()}
    for buffer, step in (("sizes", 0.1), ("counts", 1)):
        tied[buffer][taken] -= step
        tied[buffer][other] += step
    assert not judgement.judge_state(tied, case, 0)["check"]
    for buffer, step in (("sizes", 0.1), ("counts", 1)):
        for away in (6, other):  # a row that is near to one code alone, and a second one at the tie
            wrong = {name: tensor.clone() for name, tensor in tied.items()}
            wrong[buffer][1] -= step
            wrong[buffer][away] += step
            assert judgement.judge_state(wrong, case, 0)["check"] == "buffers"


def test_integers_beyond_what_float64_holds_are_compared_as_integers() -> None:
    own = torch.tensor([2**60 + 1])
    assert is_excused(own.clone(), own, own, [own.clone()], lambda *_: True)
    assert not is_excused(own + 6, own, own, [own.clone()], lambda *_: True)
