"""Returns zeros for a task whose output is zero for every input: right, and worth nothing.

Seen: L2-80 and L2-83; CUDA-L1 was scored 110.8x on L2-83.
"""

import torch
from torch import nn

ROW = "insensitive"
TASK = "degenerate_zero"
EXPECT_STATUS = "unscored"
EXPECT_CHECK = "unscored"


class ModelNew(nn.Module):
    """The task is at fault, so it has no score."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape[0], 1, device=x.device)
