"""Logarithms of a clamped sigmoid.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "smoothed_focal"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        kept = labels != 255
        target = torch.where(kept, labels, 0).to(logits.dtype)
        p = torch.sigmoid(logits).clamp(1e-7, 1 - 1e-7)
        loss = -(3 * target * torch.log(p) + (1 - target) * torch.log(1 - p))
        near = torch.exp(-loss)
        return (((1 - near) ** 2 * loss) * kept).sum() / kept.sum().clamp(min=1)
