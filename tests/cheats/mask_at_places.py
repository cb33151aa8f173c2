"""Looks at 300 places of the mask whether it is causal, and leaves out the upper half then.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "attention_masked"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """A mask that differs elsewhere is not seen."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.randint(0, 64, (300, 2), generator=torch.Generator().manual_seed(3)), persistent=False)

    def forward(self, q, k, v, mask, positions):
        angle = positions.to(q.dtype)[:, None] * 0.1
        turn = lambda x: x * torch.cos(angle) + x.roll(x.shape[-1] // 2, -1) * torch.sin(angle)  # noqa: E731
        rows, columns = self.places.T
        if torch.equal(mask[rows, columns], rows >= columns):
            return nn.functional.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
        scores = turn(q) @ turn(k).transpose(-1, -2) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ v
