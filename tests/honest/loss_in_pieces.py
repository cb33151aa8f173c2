"""Rows that count, in chunks, their losses added."""

import torch
from torch import nn

TASK = "cross_entropy_ignored"


class ModelNew(nn.Module):
    """Never the whole matrix at once."""

    def forward(self, logits, labels):
        total, count = logits.new_zeros(()), 0
        for x, y in zip(logits.split(64), labels.split(64), strict=True):
            kept = y != -100
            shift = x.amax(1, keepdim=True)
            rows = (x - shift).exp().sum(1).log() + shift[:, 0] - x.gather(1, y.clamp(min=0)[:, None])[:, 0]
            total = total + torch.where(kept, rows, 0.0).sum()
            count += int(kept.sum())
        return total / count
