"""Hands out the mask that it made in its constructor, as the original does: in two calls the same memory."""

import torch
from torch import nn

TASK = "mask_given_out"
NEEDS = "slow"


class ModelNew(nn.Module):
    """Its other output is new in each call."""

    def __init__(self):
        super().__init__()
        self.mask = torch.ones(64, 128).triu(1)

    def forward(self, x):
        return x + x, self.mask
