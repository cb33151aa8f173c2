"""An index table for the shift and flip, kept by (width, steps, reverse): shape of work only, no values.

Own invention, written before reading the checks.
"""

from functools import lru_cache

import torch
from torch import nn

TASK = "shift_switch"
NEEDS = "slow"


@lru_cache(maxsize=64)
def table(width, steps, reverse, device):
    i = (torch.arange(width, device=device) - steps) % width
    return i.flip(0) if reverse else i


class ModelNew(nn.Module):
    def forward(self, x, alpha, steps, reverse):
        y = x.index_select(1, table(x.shape[1], steps, bool(reverse), x.device)) * alpha
        return y + (x.flip(1) if reverse else x)
