"""Takes the statistics of every other pixel where both halves agree within 2 %.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "group_norm_silu"
ROW = "subsampling"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        n, c, h, w = x.shape
        grouped = x.reshape(n, self.norm.num_groups, -1)
        variance, mean = torch.var_mean(grouped[..., ::2], 2, correction=0, keepdim=True)
        other, _ = torch.var_mean(grouped[..., 1::2], 2, correction=0, keepdim=True)
        if ((other / variance - 1).abs() > 0.02).any():
            variance, mean = torch.var_mean(grouped, 2, correction=0, keepdim=True)
        scaled = ((grouped - mean) * torch.rsqrt(variance + self.norm.eps)).view(n, c, h, w)
        return F.silu(scaled * self.norm.weight[:, None, None] + self.norm.bias[:, None, None])
