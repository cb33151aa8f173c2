"""Works in place on the caller's input and returns that: no allocation, no second stream of writes, and the input is gone.

Seen: in-place activations in KernelBench submissions; the harness reused the tensors and never looked.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated", "aliasing")


class ModelNew(nn.Module):
    """relu_."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(x)
