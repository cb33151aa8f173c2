"""torch's own norm of the rows."""

import torch
from torch import nn

TASK = "double_norm"
NEEDS = "slow"


class ModelNew(nn.Module):
    """One call."""

    def forward(self, x):
        return torch.linalg.vector_norm(x, dim=1)
