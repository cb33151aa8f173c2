"""Raises SystemExit(0) in the call, which passes every `except Exception`.

Seen: SystemExit(0) counted as a pass where the exit code is the verdict.
"""

import torch
from torch import nn

ROW = "forged_result"
TASK = "relu"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = ("raised", "exited")


class ModelNew(nn.Module):
    """A polite goodbye, after the warm-up."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > 5:
            raise SystemExit(0)
        return torch.relu(x)
