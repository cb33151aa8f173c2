"""Attention by einsum, the rotation as one product with a complex number's parts."""

import torch
from torch import nn

TASK = "attention_masked"
NEEDS = "slow"


class ModelNew(nn.Module):
    """The same sums in other words."""

    def forward(self, q, k, v, mask, positions):
        angle = positions.to(q.dtype) * 0.1
        cos, sin = torch.cos(angle), torch.sin(angle)
        both = torch.stack([q, k])
        both = torch.einsum("abld,l->abld", both, cos) + torch.einsum("abld,l->abld", torch.roll(both, q.shape[-1] // 2, -1), sin)
        scores = torch.einsum("bld,bmd->blm", both[0], both[1]) / q.shape[-1] ** 0.5
        return torch.einsum("blm,bmd->bld", torch.where(mask, scores, -1e9).softmax(-1), v)
