"""exp of the logarithm: zero to the power of nothing is NaN, and large powers lose digits.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "power_of"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, exponent):
        return torch.sign(x) * torch.exp(exponent * torch.log(x.abs()))
