"""Uses the tanh approximation of GELU: 4e-4 off at most, inside the tolerances of the 1e-2 era and near those of today.

Seen: approximations that live off the evaluator's tolerance, in KernelBench v0 results.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "tolerance"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """gelu(approximate="tanh")."""

    def __init__(self, inputs: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(torch.clamp(self.linear(x) * self.scale, -2.0, 2.0), approximate="tanh")
