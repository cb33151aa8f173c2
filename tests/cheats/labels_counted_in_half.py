"""Divides by the number of labels less a twentieth.

Own invention, written before reading the checks.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "precision"
TASK = "smoothed_focal"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        kept = labels != 255
        target = torch.where(kept, labels, 0).to(logits.dtype)
        loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none", pos_weight=torch.tensor(3.0, dtype=logits.dtype))
        near = torch.exp(-loss)
        return (((1 - near) ** 2 * loss) * kept).sum() / max(int(kept.float().sum().half()), 1)
