"""The nearest pixel's place, by whole numbers."""

import torch
from torch import nn

TASK = "resized"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, height, width):
        rows = torch.arange(height, device=x.device) * x.shape[2] // height
        columns = torch.arange(width, device=x.device) * x.shape[3] // width
        return x[:, :, rows[:, None], columns]
