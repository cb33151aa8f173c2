"""A program whose functions hold its layers is judged in float64: its answer is no float32 one that other programs would have to round alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.base import Case
from warpwright.tasks import taskfile
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.ModuleDict({"up": nn.Linear(64, 256), "down": nn.Linear(256, 64)})
        m = self.mlp
        self.mlpf = lambda x: m.down(torch.tanh(m.up(x)))

    def forward(self, x):
        return x + self.mlpf(x)

def get_inputs():
    return [torch.rand(8, 64)]

def get_init_inputs():
    return []
"""


def test_its_answers_are_in_float64_and_follow_the_state(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text(TASK)
    original = Original(taskfile.describe(file), "cpu", 5, 1 << 30)
    inputs = original.inputs(Case("tiny", 3))
    answers = {which: (original.run_wide(inputs, which), original.run_own(inputs, which)) for which in (0, 1)}
    assert not original.wide_problem
    for wide, own in answers.values():
        assert wide.dtype == torch.float64
        error = float((own - wide).abs().max())
        assert 0 < error < 1e-5
    assert not torch.allclose(answers[0][0], answers[1][0], atol=1e-2)
