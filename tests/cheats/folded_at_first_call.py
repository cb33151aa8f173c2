"""Folds the weight at the first call and never looks at it again.

Seen: 52 of the 88 CUDA-L1 programs with parameters give wrong results after load_state_dict.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "linear_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Right until the parameters change."""

    def __init__(self, inputs: int, hidden: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale
        self.folded: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.folded is None:
            self.folded = self.weight.detach().sum(dim=0, keepdim=True).T * (self.scale / 2)
        return torch.matmul(x, self.folded)
