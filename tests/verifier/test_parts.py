"""Small rows and columns of an output beside large ones: judged by themselves, and with room for honest rounding."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.judge import parts
from warpwright.verifier.judge.judgement import Judgement
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, weight):
        y = x @ weight
        return {answer}

def get_inputs():
    return [torch.randn(48, 128), torch.randn(128, 40)]

def get_init_inputs():
    return []
"""
LAYOUTS = {"columns": "torch.cat([y * {scale}, y], 1)", "rows": "torch.cat([y * {scale}, y], 0)", "channels": "torch.stack([y * {scale}, y], 1)"}


def judgement(tmp_path: Path, answer: str) -> tuple[Judgement, Case]:
    file = tmp_path / "task.py"
    file.write_text(TASK.format(answer=answer))
    return Judgement(Original(taskfile.describe(file), "cpu", 5, 1 << 30)), Case("normal", 3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_coarse_small_part_is_seen_and_an_honest_one_is_not(tmp_path: Path, layout: str) -> None:
    judge, case = judgement(tmp_path, LAYOUTS[layout].format(scale=1000))
    inputs = judge.original.inputs(case)
    terms = [part @ rows for part, rows in zip(inputs[0].split(32, 1), inputs[1].split(32, 0), strict=True)]
    y = terms[3] + terms[2] + terms[1] + terms[0]
    answer = {"columns": lambda small: torch.cat([y * 1000, small], 1), "rows": lambda small: torch.cat([y * 1000, small], 0)}
    answer["channels"] = lambda small: torch.stack([y * 1000, small], 1)
    assert judge.judge([answer[layout](y)], case, 0)["check"] == ""
    refused = judge.judge([answer[layout](y * (1 + 3e-5 * torch.randn_like(y)))], case, 0)
    assert refused["check"] == "values" and "which is small beside the rest" in refused["reason"]


@pytest.mark.parametrize("answer", ["torch.cat([y * 10, y], 1)", "torch.cat([y[:8] * 1000, y[:8]], 1)"])
def test_what_is_not_small_or_has_few_elements_is_judged_with_the_whole(tmp_path: Path, answer: str) -> None:
    judge, case = judgement(tmp_path, answer)
    assert judge.original.answer(case, 0).leaves[0].small == ()


def test_zeros_and_numbers_that_are_none_are_left_out() -> None:
    exact = torch.zeros(4, 64, dtype=torch.float64)
    exact[0], exact[2], exact[3] = 1e6, 1.0, float("inf")
    [part] = parts.of(exact, exact.float(), 1e5, parts.sizes(exact, 1e5))
    assert (part.dimension, part.indices.tolist(), part.own.tolist()) == (0, [2], [0.0])
    other = parts.worse(part, torch.full((4, 64), float("nan")), exact)
    assert other.own.tolist() == [0.0]
    assert parts.excess(part, torch.full((4, 64), float("nan")), exact, torch.float32)[0] == float("inf")


def test_what_is_small_in_one_case_by_chance_is_judged_with_the_whole(tmp_path: Path) -> None:
    """Where the inputs are zero a column may be the difference of two roundings: nobody's digits mean anything there."""
    judge, case = judgement(tmp_path, "y + torch.where(torch.arange(40) == 7, 1e-5, 1.0)")
    original = judge.original
    zeros = Case("zeros", 3)
    assert [part.indices.tolist() for part in original.answer(zeros, 0).leaves[0].small] == [[7]]
    assert original.answer(case, 0).leaves[0].small == ()
    assert original.answer(zeros, 0).leaves[0].small == ()


def test_an_index_where_the_original_overflows_leaves_the_others_looked_at() -> None:
    exact = torch.cat([torch.full((1, 64), 1e3, dtype=torch.float64), torch.ones(2, 64, dtype=torch.float64)])
    own = exact.clone()
    own[1, 0] = torch.inf
    rms = float(exact.square().mean().sqrt())
    [part] = [part for part in parts.of(exact, own, rms, parts.sizes(exact, rms)) if part.dimension == 0]
    assert part.indices.tolist() == [2]


def test_near_ties_in_a_small_part_allow_its_other_elements_nothing(tmp_path: Path) -> None:
    """Of the small half each row begins with a quotient that a unit in the last place of the inputs turns into anything; the rest is a product."""
    ties = "1e-3 / ((x[:, :1] + 3e4 * x.sign()[:, :1]) - 3e4 * x.sign()[:, :1] - x[:, :1] + 1e-3)"
    judge, case = judgement(tmp_path, f"torch.cat([y * 1000, {ties}, y], 1)")
    original = judge.original
    right = original.run_own(original.inputs(case), 0)
    coarse = right.clone()
    coarse[:, 41:] *= 1 + 1e-4 * torch.randn_like(coarse[:, 41:])
    assert judge.judge([right], case, 0)["check"] == ""
    assert judge.judge([coarse], case, 0)["check"] == "values"


@pytest.mark.parametrize("together", [True, False])
def test_an_index_whose_elements_err_together_is_one_draw(together: bool) -> None:
    """Where all rows of a batch are the same, a column that the original has right by luck allows what the others do."""
    draws = torch.Generator().manual_seed(5)
    exact = torch.cat([torch.full((64, 8), 10.0), torch.full((64, 40), 1e-3)], 1).double()
    errors = [torch.randn(1 if together else 64, 48, generator=draws).double() * 1e-6 for _ in range(2)]
    errors[0][:, 20] *= 1e-3
    rms = float(exact.square().mean().sqrt())
    [part] = [one for one in parts.of(exact, exact + errors[0], rms, parts.sizes(exact, rms)) if one.dimension == 1]
    ratio, where = parts.excess(part, exact + errors[1], exact, torch.float32)
    assert (ratio <= 1) == together and ("index 20 of dimension 1" in where or together)
    assert parts.excess(part, exact + 100 * errors[1], exact, torch.float32)[0] > 1


def test_equal_rows_allow_a_tiny_column_no_more_than_its_size_does() -> None:
    """The median of the errors is one of columns near 30: taken as it is, columns near 1e-5 could be zero."""
    sizes = torch.cat([torch.tensor([1e4]), torch.linspace(20, 40, 60), torch.linspace(1e-5, 2e-5, 39)]).double()
    exact = sizes.expand(64, 100).contiguous()
    own = exact * (1 + 1e-7 * torch.randn(100, generator=torch.Generator().manual_seed(5)).double())
    own[:, 70] = exact[:, 70]
    rms = float(exact.square().mean().sqrt())
    [part] = [one for one in parts.of(exact, own, rms, parts.sizes(exact, rms)) if one.dimension == 1]
    zeroed = own.clone()
    zeroed[:, 61:] = 0
    assert parts.excess(part, own, exact, torch.float32)[0] <= 1 < 1e4 < parts.excess(part, zeroed, exact, torch.float32)[0]
    assert float(part.own[part.indices == 70]) == 0
