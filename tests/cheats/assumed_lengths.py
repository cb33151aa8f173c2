"""Takes the lengths to rise by one a row, as they do in the file.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "lengths"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Never reads `lengths`."""

    def forward(self, x, lengths):
        steps = torch.arange(x.shape[1], device=x.device)
        return (x * (steps < torch.arange(49, 65, device=x.device)[:, None])[:, :, None]).sum(1)
