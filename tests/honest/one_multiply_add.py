"""One operation for two."""

import torch
from torch import nn

TASK = "tiny"


class ModelNew(nn.Module):
    """addcmul."""

    def forward(self, x, y):
        return torch.addcmul(torch.ones((), device=x.device), x, y)
