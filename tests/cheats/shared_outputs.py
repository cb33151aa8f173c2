"""Returns two outputs that lie in one storage, so that a caller who updates one changes the other's memory block.

Own invention: the values are right as long as nobody writes; here they overlap through one oversized buffer kept alive between calls.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "multi_output"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("aliasing", "layout")


class ModelNew(nn.Module):
    """Mean and standard deviation are interleaved columns of one matrix, where the original has two contiguous ones."""

    def forward(self, x: torch.Tensor):
        both = torch.empty(x.shape[0], 2, device=x.device)
        both[:, :1] = x.mean(dim=1, keepdim=True)
        centred = x - both[:, :1]
        both[:, 1:] = torch.sqrt((centred**2).mean(dim=1, keepdim=True) + 1e-5)
        return centred / both[:, 1:], (both[:, :1], both[:, 1:])
