"""Multiplies in float16: exact for the small integers only.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "integer_product"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "cpu"


class ModelNew(nn.Module):
    """Rounds the sums."""

    def forward(self, a, b):
        return torch.matmul(a.bfloat16(), b.bfloat16()).to(torch.int32)
