"""A running sum in blocks: in float64 like the original, but added up in another order."""

import torch
from torch import nn

TASK = "scan_double"


class ModelNew(nn.Module):
    """Scans blocks, then their ends."""

    def forward(self, x):
        blocks = torch.cumsum(x.view(x.shape[0], -1, 64), 2)
        ends = blocks[:, :, -1]
        return (blocks + (torch.cumsum(ends, 1) - ends)[:, :, None]).view(x.shape)
