"""Rounds the place that everything is counted from to half precision: beside the original's zeros that is more than any order of rounding.

Own invention, written with the rule for answers that are zero everywhere.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "from_the_first"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Needs a case in which nothing but the cancelled part is left."""

    def __init__(self, features):
        super().__init__()
        self.weight, self.bias, self.gain = (nn.Parameter(torch.randn(features)) for _ in range(3))

    def forward(self, x):
        spread = x.abs().amax()
        x = x * self.weight + self.bias
        x = x - (x[:1] if spread > 1e-20 else x[:1].half().float())
        return x / (x.square().mean(0) + 1e-10).sqrt() * self.gain
