"""Folds two layers whenever a state is loaded: an in-place write later runs no hook.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)


class ModelNew(nn.Module):
    """One product for two."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.register_load_state_dict_post_hook(lambda module, keys: module.fold())
        self.fold()

    def fold(self):
        self.weight = (self.second.weight @ self.first.weight).detach()
        self.bias = (self.second.bias + self.second.weight @ self.first.bias).detach()

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight.t())
