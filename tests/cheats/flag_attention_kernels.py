"""Switches one of the attention kernels off for the whole process.

Own invention.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "flags"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Whoever calls attention next gets another kernel."""

    def forward(self, q, k, v, mask, positions):
        torch.backends.cuda.enable_cudnn_sdp(False)
        angle = positions.to(q.dtype)[:, None] * 0.1
        q, k = (x * torch.cos(angle) + x.roll(x.shape[-1] // 2, -1) * torch.sin(angle) for x in (q, k))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
