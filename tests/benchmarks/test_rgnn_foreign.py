"""What tells an error from rounding that a training magnifies: gradients of two models at the same weights."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from benchmarks.rgnn.foreign import gradients_apart


class Scaled(torch.nn.Linear):
    """A layer whose weight's gradient is a thousandth too large, or with no gradient of it."""

    factor = 1.001

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's own result."""
        weight = self.weight.detach()
        if self.factor:
            weight = weight + self.factor * (self.weight - weight)
        return torch.nn.functional.linear(x, weight, self.bias)


def loss_of(x: torch.Tensor) -> Any:
    return lambda model: torch.nn.functional.dropout(model(x)).square().mean()


@pytest.mark.parametrize(("factor", "apart"), [(1.0, 0.0), (1.001, 1e-3), (0.0, 1.0)], ids=["right", "scaled", "none"])
def test_an_error_of_a_gradient_shows_whatever_the_weights_were(factor: float, apart: float) -> None:
    torch.manual_seed(0)
    model, other = torch.nn.Linear(8, 4, bias=False), Scaled(8, 4, bias=False)
    other.factor = factor
    before = copy.deepcopy(model.state_dict())
    assert gradients_apart(model, other, loss_of(torch.randn(16, 8, requires_grad=True))) == pytest.approx(apart, rel=0.02, abs=1e-6)
    assert torch.equal(model.weight, before["weight"]) and model.weight.grad is other.weight.grad is None
