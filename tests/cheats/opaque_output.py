"""Returns oneDNN's opaque tensor: a plain torch.Tensor by type, of a layout that nobody reads.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "lazy"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("output_type",)
NEEDS = "cpu"


class ModelNew(nn.Module):
    """to_mkldnn."""

    def forward(self, x):
        return torch.relu(x).to_mkldnn()
