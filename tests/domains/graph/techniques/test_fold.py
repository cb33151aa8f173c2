"""Folding: sums of parameters, which are formed once for each state, are formed in float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured, run
from warpwright.domains.graph.techniques.fold import FOLD


class Shifted(nn.Module):
    """Takes the sum and the mean of a parameter away."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.shift = nn.Parameter(values)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.shift.sum(1, keepdim=True) - self.shift.mean(-1).unsqueeze(1)


def folded(values: torch.Tensor) -> torch.Tensor:
    model, x = Shifted(values), torch.zeros(1, 3)
    ir = captured(model, x)
    [action] = FOLD.sites(ir)
    after = FOLD.apply(ir, action)
    with torch.no_grad():
        [result] = run(after, [x], dict(model.state_dict()), flat=True)
    assert result.dtype == torch.float32
    return result


def test_sums_of_parameters_are_added_in_float64() -> None:
    values = torch.ones(1, 4096)
    values[0, 0], values[0, -1] = 3e8, -3e8  # in float32 the ones between them are lost
    expected = -(4094 + 4094 / 4096)
    assert folded(values).tolist() == [[pytest.approx(expected, rel=1e-6)] * 3]
    assert float((torch.zeros(1, 3) - values.sum(1, keepdim=True) - values.mean(-1)[:, None])[0, 0]) != pytest.approx(expected, rel=1e-3)
