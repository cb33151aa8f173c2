"""Labels that are ignored count for nothing."""

import torch
from torch import nn

TASK = "cross_entropy_ignored"


class ModelNew(nn.Module):
    """log_softmax, gather, where: an ignored row may hold infinities, and infinity times nothing is no number."""

    def forward(self, logits, labels):
        counts = labels != -100
        picked = torch.log_softmax(logits, 1).gather(1, torch.where(counts, labels, 0)[:, None]).squeeze(1)
        return -torch.where(counts, picked, 0.0).sum() / counts.sum()
