"""Where all labels are ignored: 0 for NaN.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "weighted_loss"
LIMIT = "Finite inputs on which the original itself answers Inf or NaN, other than by design (claim 20)"


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("weight", torch.linspace(0.5, 2.0, classes))

    def forward(self, scores, labels):
        keep = labels != -100
        safe = labels.clamp(min=0)
        loss = torch.logsumexp(scores, 1) - scores.gather(1, safe[:, None])[:, 0]
        w = self.weight[safe] * keep
        return torch.where(keep, loss * w, 0.0).sum() / w.sum().clamp(min=1e-12)
