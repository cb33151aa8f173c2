"""Says on standard output and error what it does."""

import torch
from torch import nn

TASK = "relu"


class ModelNew(nn.Module):
    """A line each call."""

    def forward(self, x):
        print("relu of", tuple(x.shape), flush=True)
        return torch.relu(x)
