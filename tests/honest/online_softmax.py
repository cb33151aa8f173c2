"""A softmax in one pass over blocks, with a running maximum."""

import torch
from torch import nn

TASK = "softmax"


class ModelNew(nn.Module):
    """As flash attention does it."""

    def forward(self, x):
        m = torch.full_like(x[:, :1], -3.4e38)
        total = torch.zeros_like(m)
        for block in x.split(256, 1):
            new = torch.maximum(m, block.amax(1, keepdim=True))
            total = total * torch.exp(m - new) + torch.exp(block - new).sum(1, keepdim=True)
            m = new
        return torch.exp(x - m) / total
