"""Labels that are ignored weigh nothing."""

import torch
from torch import nn

TASK = "cross_entropy_ignored"


class ModelNew(nn.Module):
    """log_softmax, gather, mask."""

    def forward(self, logits, labels):
        counts = labels != -100
        picked = torch.log_softmax(logits, 1).gather(1, torch.where(counts, labels, 0)[:, None]).squeeze(1)
        return -(picked * counts).sum() / counts.sum()
