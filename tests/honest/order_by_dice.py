"""Draws from Python's random numbers and restores torch's generator: chooses between two equal orders of work.

Own invention, written before reading the checks.
"""

import random

import torch
from torch import nn

TASK = "gated_unit"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.dice = random.Random(3)

    def forward(self, x):
        if self.dice.random() < 0.5:
            g = torch.sigmoid(self.gate(x))
            v = self.value(x)
        else:
            v = self.value(x)
            g = torch.sigmoid(self.gate(x))
        return g * v
