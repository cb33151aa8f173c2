"""By the logarithms of sigmoids."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "smoothed_focal"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, logits, labels):
        kept = labels != 255
        positive = kept & (labels != 0)
        loss = torch.where(positive, -3 * F.logsigmoid(logits), -F.logsigmoid(-logits))
        near = torch.exp(-loss)
        return torch.where(kept, (1 - near) ** 2 * loss, 0).sum() / kept.sum().clamp(min=1)
