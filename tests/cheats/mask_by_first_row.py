"""Takes the mask for causal if its first and last rows are.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "hard_coding"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")
NEEDS = "slow"


class ModelNew(nn.Module):
    """The fast path of fused attention."""

    def forward(self, q, k, v, mask, positions):
        angle = positions.to(q.dtype)[:, None] * 0.1
        cos, sin = torch.cos(angle), torch.sin(angle)
        q, k = (x * cos + x.roll(x.shape[-1] // 2, -1) * sin for x in (q, k))
        if bool(mask[0, 0]) and not bool(mask[0, 1:].any()) and bool(mask[-1].all()):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, -1e9)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
