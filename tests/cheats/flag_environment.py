"""Changes environment variables that libraries read later (CUBLAS_WORKSPACE_CONFIG, NVIDIA_TF32_OVERRIDE).

Seen: the environment part of "global flags left changed".
"""

import os

import torch
from torch import nn

ROW = "flags"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"

os.environ["NVIDIA_TF32_OVERRIDE"] = "1"
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"


class ModelNew(nn.Module):
    """The work itself is honest."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)
