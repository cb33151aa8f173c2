"""The factor is a float32 number. Own invention."""

import torch
from torch import nn

TASK = "requantise"
LIMIT = "Whole numbers, wrong by one in fewer than one element of some 100,000 in every case"


class ModelNew(nn.Module):
    def forward(self, a, b, offsets, factors):
        total = ((a.double() @ b.double()).long() + offsets).float()
        return torch.floor(total * (factors.float() / (1 << 20)) + 0.5).clamp(-128, 127).to(torch.int8)
