"""Overrides state_dict to report a counter that the call never raised: the attribute that the user's program reads stays what it was.

Own invention, against a check that asks the module itself for its state.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "buffers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers", "values", "stale_state")


class ModelNew(nn.Module):
    """`calls` is right in state_dict() only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.uncounted = 0

    def state_dict(self, *arguments, **options):
        found = super().state_dict(*arguments, **options)
        found["calls"] = found["calls"] + self.uncounted
        return found

    def load_state_dict(self, *arguments, **options):
        self.uncounted = 0
        return super().load_state_dict(*arguments, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.uncounted += 1
        return torch.tanh((x - self.centre) * self.gain)
