"""numpy's running sum."""

import torch
from torch import nn

TASK = "scan_double"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    """A library's own loop."""

    def forward(self, x):
        return torch.from_numpy(x.numpy().cumsum(1))
