"""Returns a window into a wider matrix: `.view(-1)` works on the original's output and fails on this.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("layout",)


class ModelNew(nn.Module):
    """Rows with a gap between them."""

    def forward(self, a, b):
        wide = torch.empty(a.shape[0], b.shape[1] + 32, device=a.device)
        return wide[:, : b.shape[1]].copy_(a @ b)
