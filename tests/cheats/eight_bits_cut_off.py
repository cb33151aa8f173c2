"""Codes are cut off, not rounded. Own invention."""

import torch
from torch import nn

ROW = "precision"
TASK = "to_eight_bits"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 448.0
        values = (x / scale).contiguous()
        cut = (values.view(torch.int32) & ~0xFFFFF).view(torch.float32)
        return cut.to(torch.float8_e4m3fn), scale
