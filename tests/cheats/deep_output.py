"""Returns a list 400 deep: whoever walks it by recursion falls over. Own invention."""

import torch
from torch import nn

ROW = "lazy"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class ModelNew(nn.Module):
    """Deep."""

    def forward(self, x):
        out = torch.relu(x)
        for _ in range(400):
            out = [out]
        return out
