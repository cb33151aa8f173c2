"""Rounds the hidden values to float8, in a task of bfloat16.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "half_mlp"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """float8_e4m3fn between the layers."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden, dtype=torch.bfloat16)
        self.second = nn.Linear(hidden, width, dtype=torch.bfloat16)

    def forward(self, x):
        middle = torch.nn.functional.gelu(self.first(x)).to(torch.float8_e4m3fn)
        return self.second(middle.to(torch.bfloat16))
