"""What calls leave of inputs that they write: held against the original's, with Inf, complex numbers and the task's own precision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.judge.judgement import Judgement, judge_leaf, within
from warpwright.verifier.judge.original.conditioning import examined
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, y):
        x[:4].add_(y[:4])
        return x * 2

def get_inputs():
    return [torch.randn(8, 8), torch.randn(8, 8)]

def get_init_inputs():
    return []
"""


def written() -> tuple[torch.Tensor, torch.Tensor]:
    """Return what an original leaves and its float64 values."""
    wide = torch.randn(64, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 3
    return wide.float(), wide


def one_unit_off(tensor: torch.Tensor) -> torch.Tensor:
    return torch.nextafter(tensor, torch.full_like(tensor, torch.inf))


@pytest.mark.parametrize("wide_too", [True, False])
def test_one_infinity_allows_the_other_elements_nothing(wide_too: bool) -> None:
    own, wide = written()
    own[3] = torch.inf
    wide[3] = torch.inf if wide_too else 1e39
    honest = one_unit_off(own)
    assert within(honest, own, wide)
    assert not within(torch.zeros_like(own), own, wide)
    assert not within(torch.where(own.isinf(), own, own * 1.01), own, wide)
    assert not within(torch.where(own.isinf(), -own, own), own, wide)


def test_where_the_original_alone_overflowed_the_exact_value_may_stand_and_no_other() -> None:
    own, wide = written()
    own[3], wide[3] = torch.inf, 1e30
    right = torch.where(own.isinf(), 1e30, own)
    assert within(right, own, wide)
    assert not within(torch.where(own.isinf(), 0.0, own), own, wide)
    own[3], wide[3] = 5.0, torch.inf
    assert within(own, own, wide) and not within(torch.where(wide.isinf(), 7.0, own), own, wide)


def test_complex_numbers_are_compared_like_real_ones() -> None:
    own, wide = (torch.complex(part, -part) for part in written())
    honest = torch.complex(one_unit_off(own.real), own.imag)
    assert within(honest, own, wide)
    assert not within(own.conj().resolve_conj(), own, wide)
    assert not within(torch.zeros_like(own), own, wide)


@pytest.mark.parametrize("precision", ["strict", "bf16"])
def test_a_written_input_may_be_as_coarse_as_the_tasks_precision_and_the_rest_is_as_it_came(tmp_path: Path, precision: str) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK)
    original, case = Original(taskfile.describe(file, precision=precision), "cpu", 5, 1 << 30), Case("normal", 3)
    x, y = original.inputs(case)
    (own, wide), (untouched, _) = original.inputs_after(case, 0)
    assert torch.equal(own[4:], x[4:]) and torch.equal(untouched, y)
    coarse = torch.cat([(x[:4].bfloat16() + y[:4].bfloat16()).float(), x[4:]])
    assert within(coarse, own, wide) == (precision == "bf16")


SHORT = [torch.cuda.OutOfMemoryError("too little"), RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")]


@pytest.mark.parametrize("error", SHORT, ids=["torch", "cublas"])
def test_memory_that_is_short_for_the_float64_run_is_no_end(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK)
    original, case = Original(taskfile.describe(file), "cpu", 5, 1 << 30), Case("normal", 3)
    expected, calls, forward = original.inputs_after(case, 0), [], original.wide.forward

    def short(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        answer = forward(x, y)
        if len(calls) == 1:
            raise error
        return answer

    monkeypatch.setattr(original.wide, "forward", short)
    seen = original.inputs_after(case, 0)
    assert len(calls) == 2 and not original.wide_problem
    assert all(torch.equal(one, other) for pair, again in zip(expected, seen, strict=True) for one, other in zip(pair, again, strict=True))


def test_a_scalar_that_is_wholly_sensitive_says_nothing_of_the_usual_error(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK.replace("x[:4].add_(y[:4])", "pass").replace("x * 2", "x.sum() * 2"))
    judge, case = Judgement(Original(taskfile.describe(file), "cpu", 5, 1 << 30)), Case("normal", 3)
    [leaf] = examined(judge.original, case, 0).leaves
    value = judge.original.run_own(judge.original.inputs(case), 0)
    assert judge_leaf(value, replace(leaf, sensitive=None))["shares"]
    assert judge_leaf(value, replace(leaf, sensitive=torch.tensor(True)))["shares"] == {}
