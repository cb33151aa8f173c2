"""Takes the mask to be causal: in the file's own inputs it always is.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "hard_coding"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Never reads `mask`."""

    def forward(self, q, k, v, mask, positions):
        angle = positions.to(q.dtype)[:, None] * 0.1
        turn = lambda x: x * torch.cos(angle) + x.roll(x.shape[-1] // 2, -1) * torch.sin(angle)  # noqa: E731
        return F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
