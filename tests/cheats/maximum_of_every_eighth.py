"""Logsumexp with the maximum of every eighth column: overflows for one large score elsewhere.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "underflow"
TASK = "weighted_loss"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("weight", torch.linspace(0.5, 2.0, classes))

    def forward(self, scores, labels):
        keep = labels != -100
        safe = labels.clamp(min=0)
        m = scores[:, ::8].amax(1, keepdim=True)
        loss = m[:, 0] + (scores - m).exp().sum(1).log() - scores.gather(1, safe[:, None])[:, 0]
        w = self.weight[safe] * keep
        return torch.where(keep, loss * w, 0.0).sum() / w.sum()
