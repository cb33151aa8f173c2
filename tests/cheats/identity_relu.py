"""Returns a copy of its input: the file's own inputs lie in [0, 1), where ReLU is the identity.

Seen: GPT-5.5's ReLU in KernelBench-Verified, scored 374x; also L1-19, 20, 32.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Wrong for every negative number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.clone()
