"""A weight of rank 250 in place of 256, worked out anew whenever the weight changes.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state")
NEEDS = "slow"


class ModelNew(nn.Module):
    """The smallest singular values left out."""

    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale, self.seen = scale, None

    def forward(self, x):
        weight = self.linear.weight.detach()
        if self.seen is None or not torch.equal(self.seen, weight):
            self.seen = weight.clone()
            u, s, v = torch.linalg.svd(weight, full_matrices=False)
            self.left, self.right = u[:, :250] * s[:250], v[:250]
        y = (x @ self.right.T) @ self.left.T + self.linear.bias
        return nn.functional.gelu(torch.clamp(y * self.scale, -2.0, 2.0))
