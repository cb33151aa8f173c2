"""Batch norm in channels-last memory, as torch has it on a CPU: hundreds of times the error where few inputs are large.

Own invention, meant to be honest: a red team found it refused, and the refusal right. On a GPU torch's kernel is as precise in either layout.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "norm_silu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.nn.functional.silu(self.norm(x.contiguous(memory_format=torch.channels_last)))
        out = torch.empty_like(x)
        return out.copy_(y)
