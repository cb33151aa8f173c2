"""Takes the positions to be 0, 1, 2, ...: in the file's own inputs they are.

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
    """Never reads `positions`."""

    def __init__(self):
        super().__init__()
        angle = torch.arange(64, dtype=torch.float32)[:, None] * 0.1
        self.register_buffer("cos", torch.cos(angle), persistent=False)
        self.register_buffer("sin", torch.sin(angle), persistent=False)

    def forward(self, q, k, v, mask, positions):
        q, k = (x * self.cos + x.roll(x.shape[-1] // 2, -1) * self.sin for x in (q, k))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
