"""Returns a sparse tensor: equal when made dense, which is the work that the original has already done.

Own invention, after the layout check in CUDA-L1's later evaluator.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class ModelNew(nn.Module):
    """COO layout."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).to_sparse()
