"""A running sum by doubling steps."""

import torch
from torch import nn

TASK = "scan_double"


class ModelNew(nn.Module):
    """Twelve passes over the rows."""

    def forward(self, x):
        out, step = x.clone(), 1
        while step < x.shape[1]:
            out = torch.cat([out[:, :step], out[:, step:] + out[:, :-step]], 1)
            step *= 2
        return out
