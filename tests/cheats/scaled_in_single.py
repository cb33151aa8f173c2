"""The factor is a float32 number. Own invention."""

import torch
from torch import nn

ROW = "precision"
TASK = "requantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, a, b, offsets, factors):
        total = ((a.double() @ b.double()).long() + offsets).float()
        return torch.floor(total * (factors.float() / (1 << 20)) + 0.5).clamp(-128, 127).to(torch.int8)
