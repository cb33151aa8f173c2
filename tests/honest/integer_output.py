"""The index from torch.max, which has the same rule for ties on the CPU."""

import torch
from torch import nn

TASK = "argmax"


class ModelNew(nn.Module):
    """Values are thrown away."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.max(x, dim=1).indices
