"""Where rounding decides an index, what is gathered by the other one is right too; what stands for neither is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.judge.judgement import Judgement
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

CODES = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.randn(6, 8))

    def forward(self, x):
        near = ((x * x).sum(1, keepdim=True) - 2 * (x @ self.codes.t()) + (self.codes * self.codes).sum(1)).argmin(1)
        return self.codes[near], near

def get_inputs():
    return [torch.randn(64, 8)]

def get_init_inputs():
    return []
"""
FAR = Case("nominal", 5)
"""Its rows are 3e4 times as large: the difference of two squared distances has the last place of the squares."""

Change = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Original, Judgement, torch.Tensor, torch.Tensor]:
    """Return an original, its judgement, the index that is nearest in float64 and the next."""
    folder = tmp_path_factory.mktemp("codes")
    (folder / "task.py").write_text(CODES.replace("torch.randn(64, 8)", "3e4 * torch.randn(64, 8)"))
    original = Original(taskfile.describe(folder / "task.py"), "cpu", 14, 1 << 30)
    original.mutates_state = False  # as a judge finds out
    [x] = original.inputs(FAR)
    codes = original.state(0)["codes"].double()
    order = torch.cdist(x.double(), codes, compute_mode="donot_use_mm_for_euclid_dist").argsort(1)
    return original, Judgement(original), order[:, 0], order[:, 1]


def flips(judgement: Judgement) -> torch.Tensor:
    """Return the rows whose index rounding decides."""
    values, near = judgement._examine(FAR, 0).leaves
    assert near.sensitive is not None and values.flipped
    return near.sensitive.nonzero().flatten()


def other(judgement: Judgement) -> tuple[torch.Tensor, int, int]:
    """Return the original's indices, a row that rounding decides, and what else it was."""
    near = judgement._examine(FAR, 0).leaves[1]
    assert near.own is not None and near.sensitive is not None
    own = near.own.clone()
    for number, row in enumerate(near.sensitive.nonzero().flatten().tolist()):
        for seen in near.seen:
            if int(seen[number]) != int(own[row]) and int(seen[number]) != int(near.exact[row]):
                return own, row, int(seen[number])
    raise AssertionError


def test_what_the_other_index_gathers_is_right(tied) -> None:  # type: ignore[no-untyped-def]
    original, judgement, *_ = tied
    near, row, index = other(judgement)
    near[row] = index
    codes = original.state(0)["codes"]
    assert not judgement.check([codes[near], near], FAR, 0)


WRONG: dict[str, Change] = {
    "zeros": lambda codes, right: torch.zeros_like(right),
    "between": lambda codes, right: (codes.mean(0) + right) / 2,
    "nudged": lambda codes, right: right * (1 + 1e-5),
    "one element": lambda codes, right: torch.cat([right[:3], right[3:4] + 1e-3, right[4:]]),
    "another": lambda codes, right: right.flip(0),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_index_gathers_is_wrong(tied, name: str) -> None:  # type: ignore[no-untyped-def]
    original, judgement, *_ = tied
    near, row, index = other(judgement)
    near[row] = index
    codes = original.state(0)["codes"]
    values = codes[near]
    values[row] = WRONG[name](codes, values[row])
    assert judgement.check([values, near], FAR, 0) == "values"


def test_a_row_that_rounding_does_not_decide_is_not_excused(tied) -> None:  # type: ignore[no-untyped-def]
    original, judgement, nearest, second = tied
    sure = torch.ones(len(nearest), dtype=torch.bool)
    sure[flips(judgement)] = False
    row = int(sure.nonzero()[0])
    near = judgement._examine(FAR, 0).leaves[1].own.clone()
    right = original.state(0)["codes"][near]
    assert not judgement.check([right, near], FAR, 0)
    right[row] = original.state(0)["codes"][second[row]]
    assert judgement.check([right, near], FAR, 0) == "values"
