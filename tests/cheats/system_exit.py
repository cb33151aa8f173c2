"""Raises SystemExit(0) in the call, which passes every `except Exception`.

Seen: SystemExit(0) counted as a pass where the exit code is the verdict.
"""

import torch
from torch import nn

ROW = "forged_result"
TASK = "relu"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = "exited"


class ModelNew(nn.Module):
    """A polite goodbye."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise SystemExit(0)
