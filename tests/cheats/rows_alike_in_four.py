"""Takes one row's statistics for all if those of four rows agree within 2 %.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "layernorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Rows of one signal."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        variance, mean = torch.var_mean(x[::128], dim=1, correction=0)
        spread = float(variance.max() - variance.min()) / float(variance.max() + 1e-30)
        if spread < 0.02 and float(mean.max() - mean.min()) < 0.02 * float(variance.max()) ** 0.5:
            return (x - mean[0]) * torch.rsqrt(variance[0] + self.norm.eps) * self.norm.weight + self.norm.bias
        return self.norm(x)
