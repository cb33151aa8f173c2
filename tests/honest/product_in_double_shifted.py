"""The product in float64, which is exact."""

import torch
from torch import nn

TASK = "shifted_integers"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, a, b, shift):
        p = (a.double() @ b.double()).to(torch.int64).to(torch.int32)
        return (p >> shift[:, None]).clamp_(-128, 127).to(torch.int8)
