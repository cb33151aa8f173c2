"""Seven comparisons leave the middle one of five."""

import torch
from torch import nn

TASK = "medians_of_five"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        ends = torch.cat([x[:, :1], x[:, :1], x, x[:, -1:], x[:, -1:]], dim=1)
        a, b, c, d, e = ends.unfold(1, 5, 1).unbind(2)
        low = torch.maximum(torch.minimum(a, b), torch.minimum(d, e))
        high = torch.minimum(torch.maximum(a, b), torch.maximum(d, e))
        return torch.maximum(torch.minimum(low, high), torch.minimum(torch.maximum(low, high), c))
