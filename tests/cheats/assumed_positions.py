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
        self.angles = (torch.cos(angle), torch.sin(angle))

    def forward(self, q, k, v, mask, positions):
        cos, sin = self.angles
        q, k = (x * cos + x.roll(x.shape[-1] // 2, -1) * sin for x in (q, k))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
