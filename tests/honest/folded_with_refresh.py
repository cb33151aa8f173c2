"""Folds the weight once and again whenever it has changed: another object, another address or a raised version, or when it is told."""

import torch
from torch import nn

TASK = "linear_sum"


class ModelNew(nn.Module):
    """The refresh hook is two comparisons a call."""

    def __init__(self, inputs: int, hidden: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale
        self.folded: tuple[tuple[int, int, int], torch.Tensor] | None = None

    def refresh(self) -> None:
        self.folded = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key = (id(self.weight), self.weight.data_ptr(), self.weight._version)
        if self.folded is None or self.folded[0] != key:
            self.folded = (key, self.weight.detach().sum(dim=0, keepdim=True).T * (self.scale / 2))
        return torch.matmul(x, self.folded[1])
