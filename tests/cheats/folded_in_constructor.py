"""Folds the weight in the constructor, before the weights that count are loaded.

Seen: 52 of the 88 CUDA-L1 programs with parameters give wrong results after load_state_dict.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "linear_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Column sums of the initial weight."""

    def __init__(self, inputs: int, hidden: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.folded = self.weight.detach().sum(dim=0, keepdim=True).T * (scale / 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, self.folded)
