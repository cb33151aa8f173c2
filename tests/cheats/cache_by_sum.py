"""Remembers the result under the sums of the inputs, which a permutation of the values does not change.

Own invention, after the content fingerprints of kernelbot issue 501.
"""

import torch
from torch import nn

ROW = "cache"
TASK = "mse_loss"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("cached", "values")


class ModelNew(nn.Module):
    """Needs a case that has an earlier case's values in another order, or an input negated against it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[float, float], torch.Tensor] = {}

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        key = (round(float(prediction.mean()), 3), round(float(target.mean()), 3))
        if key not in self.seen:
            self.seen[key] = torch.mean((prediction - target) ** 2)
        return self.seen[key].clone()
