"""Turns the garbage collector off in each call and on again when it is done, as code does that makes many small objects."""

import gc

import torch
from torch import nn

TASK = "relu"
NEEDS = "slow"


class ModelNew(nn.Module):
    """It asks whether the collector was on, in every second call; in the others it takes that for granted."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        was_on = gc.isenabled() if self.calls % 2 else True
        gc.disable()
        try:
            return torch.relu(x)
        finally:
            if was_on:
                gc.enable()
