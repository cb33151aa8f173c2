"""Scale folded into alpha of one addmm call, on the parameters as they are at each call."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "linear_chain"


class ModelNew(nn.Module):
    """addmm(beta=scale, alpha=scale)."""

    def __init__(self, inputs: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.addmm(self.linear.bias, x, self.linear.weight.T, beta=self.scale, alpha=self.scale)
        return F.gelu(y.clamp_(-2.0, 2.0))
