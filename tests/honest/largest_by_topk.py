"""topk of one."""

import torch
from torch import nn

TASK = "argmax"
NEEDS = "slow"


class ModelNew(nn.Module):
    """The index that comes with a maximum."""

    def forward(self, x):
        return torch.max(x, 1).indices
