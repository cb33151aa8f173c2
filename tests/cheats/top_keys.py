"""Only the 48 largest scores of each row.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")
NEEDS = "slow"


class ModelNew(nn.Module):
    """The rest is nearly nothing."""

    def forward(self, q, k, v, mask, positions):
        angle = positions.to(q.dtype)[:, None] * 0.1
        turn = lambda x: x * torch.cos(angle) + x.roll(x.shape[-1] // 2, -1) * torch.sin(angle)  # noqa: E731
        scores = (turn(q) @ turn(k).transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(~mask, -1e9)
        least = scores.topk(48, -1).values[..., -1:]
        return torch.softmax(scores.masked_fill(scores < least, -1e9), -1) @ v
