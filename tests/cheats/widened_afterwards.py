"""Multiplies in the precision that the inputs have, and widens the product.

Own invention. Seen accepted: a unit of the inputs' last place is 0.8 %, and what moves by it do to the answer was allowed.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "widened_scores"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """bfloat16 where the original has float32."""

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return torch.softmax(0.1 * (query @ key.T).float(), -1)
