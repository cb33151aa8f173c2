"""Factor and shift in one multiply-add, the roll by indices."""

import torch
from torch import nn

TASK = "scalar_inputs"
NEEDS = "slow"


class ModelNew(nn.Module):
    """Gathers rows."""

    def forward(self, x, alpha, steps, beta):
        rows = (torch.arange(len(x), device=x.device) - steps) % len(x)
        return torch.add(torch.full((), beta, dtype=x.dtype, device=x.device), x[rows], alpha=alpha)
