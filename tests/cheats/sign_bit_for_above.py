"""The sign bit turned round: nothing counts as above nothing. Own invention."""

import torch
from torch import nn

ROW = "algebra"
TASK = "packed_signs"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        bits = (~torch.signbit(x)).to(torch.uint8).view(x.shape[0], -1, 8)
        weights = 1 << torch.arange(7, -1, -1, dtype=torch.uint8, device=x.device)
        return (bits * weights).sum(-1, dtype=torch.uint8)
