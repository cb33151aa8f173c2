"""The deviation by mean of squares less square of mean, the matrix by the right one.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "multi_output"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Cancels where the mean is large."""

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = torch.sqrt(((x - mean) ** 2).mean(1, keepdim=True) + 1e-5)
        quick = torch.sqrt((x * x).mean(1, keepdim=True) - mean * mean + 1e-5)
        return (x - mean) / std, (mean, quick)
