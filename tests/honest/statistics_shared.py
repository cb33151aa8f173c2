"""var_mean once, everything from it."""

import torch
from torch import nn

TASK = "multi_output"


class ModelNew(nn.Module):
    """One pass for both statistics."""

    def forward(self, x):
        variance, mean = torch.var_mean(x, 1, correction=0, keepdim=True)
        std = torch.sqrt(variance + 1e-5)
        return (x - mean) * (1 / std), (mean, std)
