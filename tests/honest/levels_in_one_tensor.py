"""All levels in one tensor, which is cut into fresh ones at the end."""

import torch
from torch import nn

TASK = "several_levels"


class ModelNew(nn.Module):
    """One tanh for all."""

    def __init__(self, levels):
        super().__init__()
        self.factors = nn.Parameter(torch.rand(levels))

    def forward(self, levels):
        flat = torch.tanh(torch.cat([level.reshape(-1) for level in levels]))
        parts = flat.split([level.numel() for level in levels])
        return [(part * factor).view(level.shape) for part, factor, level in zip(parts, self.factors, levels, strict=True)]
