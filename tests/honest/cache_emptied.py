"""Gives cached memory back to the device in each call.

Own invention.
"""

import torch
from torch import nn

TASK = "multi_output"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """torch.cuda.empty_cache."""

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        std = torch.sqrt(((x - mean) ** 2).mean(dim=1, keepdim=True) + 1e-5)
        torch.cuda.empty_cache()
        return (x - mean) / std, (mean, std)
