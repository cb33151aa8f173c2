"""A product by numpy's own library, whose threads wait busily after a call for tens of milliseconds where nobody says otherwise.

Own invention.
"""

import torch
from torch import nn

TASK = "matmul"
NEEDS = "cpu"


class ModelNew(nn.Module):
    """Its output lies in memory of numpy's."""

    def forward(self, a, b):
        return torch.from_numpy(a.numpy() @ b.numpy())
