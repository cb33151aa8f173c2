"""An original that does not take an input says so by whatever it raises; that says nothing of how exactly it can be judged on others."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright.base import Case, to_json
from warpwright.errors import TaskError
from warpwright.tasks import taskfile
from warpwright.verifier.judge.behaviour import first_output
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original.device_memory import Memory
from warpwright.verifier.judge.original.reference import Original
from warpwright.verifier.judge_client import Judge

TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x, lengths):
        {check}
        return torch.tanh(x) * lengths[:, None]


def get_inputs():
    return [torch.randn(2, 40), torch.tensor([40, 31])]


def get_init_inputs():
    return []
"""


def original(folder: Path, check: str) -> Original:
    file = folder / "padded.py"
    file.write_text(TASK.format(check=check))
    return Original(taskfile.describe(file), "cpu", 5, 1 << 30)


@pytest.mark.parametrize("raised", ["assert lengths.max() == x.shape[1]", "{40: 1}[int(lengths.max())]", "1 / (lengths.max() == 40).item()"])
def test_an_input_that_is_refused_leaves_the_oracle_as_it_was(raised: str, tmp_path: Path) -> None:
    judged = original(tmp_path, raised)
    x = torch.randn(2, 40)
    with pytest.raises((AssertionError, KeyError, ZeroDivisionError)):
        judged.run_wide([x, torch.tensor([31, 31])], 0)
    assert judged.wide_problem == "" and judged.run_wide([x, torch.tensor([40, 31])], 0).dtype == torch.float64


def test_a_case_that_is_refused_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = original(tmp_path, "assert lengths.max() == x.shape[1], 'too short'")
    inputs: Any = [torch.randn(2, 40), torch.tensor([31, 31])]
    monkeypatch.setattr(judged, "inputs", lambda case: inputs)
    worker: Any = SimpleNamespace(_original=judged, form=None, asks_host=False)
    assert JudgeWorker._problem(worker, Case("nominal", 3), 0) == "the original raises on it: too short"
    inputs[1] = torch.tensor([40, 31])
    assert JudgeWorker._problem(worker, Case("nominal", 4), 0) == ""


def test_a_program_that_asserts_its_type_is_judged_in_it(tmp_path: Path) -> None:
    judged = original(tmp_path, "assert x.dtype == torch.float32")
    assert judged.run_wide([torch.randn(2, 40), torch.tensor([40, 31])], 0).dtype == torch.float32
    assert "float64" in judged.wide_problem


def test_a_call_that_takes_tensors_out_of_its_inputs_has_changed_them(tmp_path: Path) -> None:
    """On a GPU, where the caller's dictionary is asked for what is left in it, that was a failure of the judge."""
    file = tmp_path / "padded.py"
    file.write_text(TASK.format(check="pass"))
    judge = JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": []})
    judge.open(to_json(taskfile.describe(file)), "5", host_only=True)
    answer = judge.compare_inputs({"list": []}, asdict(Case("nominal", 3)), 0, str(tmp_path))
    assert answer["check"] == "input_mutated" and "held 0 tensors, before it 2" in answer["reason"]


def test_an_original_that_raises_is_the_tasks_fault(tmp_path: Path) -> None:
    judged = original(tmp_path, "raise NotImplementedError('addmm has none for Int')")
    with pytest.raises(TaskError, match="the original raises on cpu: NotImplementedError: addmm has none for Int"):
        Judge(judged.task)


def test_a_call_without_memory_is_not_the_originals_fault(tmp_path: Path) -> None:
    judged = original(tmp_path, "raise torch.OutOfMemoryError('none left')")
    with pytest.raises(torch.OutOfMemoryError, match="none left"):
        first_output(judged, Memory("cpu"), [torch.randn(2, 40), torch.tensor([40, 31])])
