"""Reads the mask's memory as if its rows lay one behind the other, as a kernel does that is given its address alone.

Own invention, written after reading which inputs come at other strides.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "layout"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_layout", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    """Real inputs are read rightly."""

    def forward(self, q, k, v, mask, positions):
        mask = torch.as_strided(mask, mask.shape, (mask.shape[1], 1), mask.storage_offset())
        angle = positions.to(q.dtype)[:, None] * 0.1
        cos, sin = torch.cos(angle), torch.sin(angle)
        q, k = (x * cos + x.roll(x.shape[-1] // 2, -1) * sin for x in (q, k))
        bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, -1e9)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
