"""exp(x - logsumexp(x))."""

import torch
from torch import nn

TASK = "softmax"
NEEDS = "slow"


class ModelNew(nn.Module):
    """Two library calls."""

    def forward(self, x):
        shift = x.amax(1, keepdim=True)
        moved = x - shift
        return torch.exp(moved - torch.log(torch.exp(moved).sum(1, keepdim=True)))
