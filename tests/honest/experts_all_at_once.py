"""Every expert on every token, gathered."""

import torch
from torch import nn

TASK = "experts"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.weight = nn.Parameter(torch.randn(experts, width, width) * 0.1)

    def forward(self, x):
        best, which = self.gate(x).topk(2, dim=1)
        weights = torch.softmax(best, 1)
        all_ = torch.einsum("tw,ewv->etv", x, self.weight)
        rows = torch.arange(len(x), device=x.device)
        return weights[:, :1] * all_[which[:, 0], rows] + weights[:, 1:] * all_[which[:, 1], rows]
