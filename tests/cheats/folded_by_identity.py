"""Folds again only when the parameter is another object or lies elsewhere: an update in place goes unseen.

Seen: the half-made refresh hook in CUDA-L1 programs and in weight caches of inference code.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "linear_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """The key lacks `_version`."""

    def __init__(self, inputs: int, hidden: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale
        self.folded: tuple[tuple[int, int], torch.Tensor] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key = (id(self.weight), self.weight.data_ptr())
        if self.folded is None or self.folded[0] != key:
            self.folded = (key, self.weight.detach().sum(dim=0, keepdim=True).T * (self.scale / 2))
        return torch.matmul(x, self.folded[1])
