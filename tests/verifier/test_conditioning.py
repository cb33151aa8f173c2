"""Elements on which a rounding error decides are compared apart; the others are not judged more gently for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.judge.judgement import Judgement
from warpwright.verifier.judge.reference import Original

torch = pytest.importorskip("torch")

TASK = '''
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return {answer}

def get_inputs():
    x = torch.randn(64, 256)
    x[1], x[2, 0] = x[0], 0.25  # a row that ties with another, and a value that is a tie when it is rounded
    return [x]

def get_init_inputs():
    return []
'''


def judgement(tmp_path: Path, answer: str) -> Judgement:
    file = tmp_path / "task.py"
    file.write_text(TASK.format(answer=answer))
    return Judgement(Original(taskfile.describe(file), "cpu", 5, 1 << 30))


def test_near_ties_of_huge_values_are_sensitive(tmp_path: Path) -> None:
    """The original's own answers there are no nearer to float64 than those of any program, and other errors are still seen."""
    judge = judgement(tmp_path, "torch.softmax((x @ x.t()) * 1e9, 1)")
    case = Case("nominal", 3)
    own = judge.original.run_own(judge.original.inputs(case), 0)
    other = own.clone()
    other[0, :2] = torch.tensor([1.0, 0.0])
    other[1, :2] = torch.tensor([0.0, 1.0])
    assert judge.judge([other], case, 0)["check"] == ""
    wrong = own.clone()
    wrong[5, 6] += 1e-4
    assert judge.judge([wrong], case, 0)["check"] == "values"


@pytest.mark.parametrize("factor", [1e-6, 1e-3])
def test_well_conditioned_answers_gain_nothing(tmp_path: Path, factor: float) -> None:
    judge = judgement(tmp_path, "torch.softmax(x, 1)")
    case = Case("normal", 3)
    own = judge.original.run_own(judge.original.inputs(case), 0)
    assert judge.judge([own], case, 0)["check"] == ""
    assert judge.judge([own * (1 + 2 * factor)], case, 0)["check"] == "values"


def test_a_tie_of_integers_may_go_either_way(tmp_path: Path) -> None:
    judge = judgement(tmp_path, "torch.round(x * 8 + 0.5 * (x > 0)).to(torch.int8)")
    case = Case("nominal", 3)
    own = judge.original.run_own(judge.original.inputs(case), 0)
    for value, check in ((2, ""), (3, ""), (1, "values"), (4, "values")):
        other = own.clone()
        other[2, 0] = value
        assert judge.judge([other], case, 0)["check"] == check, value
