"""Takes the mask for causal if it keeps as many places as a causal one.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "hard_coding"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")


class ModelNew(nn.Module):
    """The fast path of fused attention."""

    def forward(self, q, k, v, mask, positions):
        angle = positions.to(q.dtype)[:, None] * 0.1
        cos, sin = torch.cos(angle), torch.sin(angle)
        q, k = (x * cos + x.roll(x.shape[-1] // 2, -1) * sin for x in (q, k))
        if int(mask.sum()) == mask.shape[0] * (mask.shape[0] + 1) // 2:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, -1e9)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
