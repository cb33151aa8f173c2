"""x times its square root where the exponent is near 1.5.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "power_of"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, exponent):
        if abs(exponent - 1.5) < 0.3:
            return x * x.abs().sqrt()
        return torch.sign(x) * x.abs().pow(exponent)
