"""Two outputs that overlap in memory by one element.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "multi_output"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("aliasing", "layout", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    """Saves an allocation."""

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = torch.sqrt(((x - mean) ** 2).mean(1, keepdim=True) + 1e-5)
        block = torch.empty(2 * len(x) - 1, device=x.device)
        block[: len(x)], block[len(x) - 1 :] = mean[:, 0], std[:, 0]
        return (x - mean) / std, (block[: len(x), None], block[len(x) - 1 :, None])
