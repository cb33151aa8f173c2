"""A dictionary that is built step by step from a copy of the batch."""

import torch
from torch import nn

TASK = "batch_of_names"


class ModelNew(nn.Module):
    """dict(batch), then other keys."""

    def __init__(self, width, classes):
        super().__init__()
        self.head = nn.Linear(width, classes)

    def forward(self, batch):
        work = dict(batch)
        work["scores"] = torch.addmm(self.head.bias, work.pop("features") * work.pop("weights").unsqueeze(1), self.head.weight.T)
        work["best"] = torch.max(work["scores"], dim=1).values
        return work
