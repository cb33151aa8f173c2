"""Takes positions to count up from the first.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")


class ModelNew(nn.Module):
    """A table of angles, moved along."""

    def forward(self, q, k, v, mask, positions):
        angle = (torch.arange(len(positions), device=q.device) + int(positions[0])).to(q.dtype)[:, None] * 0.1
        turn = lambda x: x * torch.cos(angle) + x.roll(x.shape[-1] // 2, -1) * torch.sin(angle)  # noqa: E731
        scores = turn(q) @ turn(k).transpose(-1, -2) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ v
