"""Drawn, well-scaled parameters: of a training step as well, whose forward asks for gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from warpwright.errors import TaskError
from warpwright.tasks import taskfile
from warpwright.tasks.modules.calibrate import calibrated


class Step(nn.Module):
    """A step as `--backward` makes one."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(64, 64), nn.Linear(64, 64)
        nn.init.zeros_(self.two.weight)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the result and a gradient."""
        with torch.enable_grad():
            y = self.two(torch.relu(self.one(x)))
            (gradient,) = torch.autograd.grad(y.square().sum(), [self.one.weight])
        return y.detach(), gradient


def test_a_training_step_is_calibrated() -> None:
    model, x = Step(), torch.randn(128, 64, generator=torch.Generator().manual_seed(1))
    drawn = calibrated(model, (x,), {})
    y, gradient = drawn(x)
    assert 0.9 < float(y.std()) < 1.1 and float(gradient.abs().max()) > 0 and float(model.two.weight.detach().abs().max()) == 0


class Placed(nn.Embedding):
    """Places of words, which may be counted from elsewhere: a keyword says from where."""

    def forward(self, count: int, *, start: int) -> torch.Tensor:
        """Return the rows from `start`."""
        return super().forward(torch.arange(start, start + count))


class Words(nn.Module):
    """A model that calls a part by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.places = Placed(40, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x with its places."""
        return x + self.places(x.shape[0], start=3)


def test_a_part_that_is_called_by_keyword_is_called_so_again() -> None:
    drawn = calibrated(Words(), (torch.zeros(30, 8),), {})
    assert 0.9 < float(drawn(torch.zeros(30, 8)).std()) < 1.1


FAILS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))

    def forward(self, x):
        if {condition}:
            raise RuntimeError("tensors on two devices")
        return x * self.weight

def get_inputs():
    return [torch.ones(3)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("condition", "said"), [("True", "the original's forward on cpu"), ("self.weight.any()", "a forward with drawn parameters")])
def test_whose_failure_it_is_is_said(condition: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILS.format(condition=condition))
    reference = taskfile.load(taskfile.describe(tmp_path / "fails.py", calibrate=True))
    with pytest.raises(TaskError, match=f"{said}.* raised RuntimeError: tensors on two devices"):
        reference.make_judged_model(0, "cpu")
