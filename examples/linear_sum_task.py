"""Task: a linear layer, the sum of its outputs, and reductions of what is left: one product with the weight's column sums."""

import torch
from torch import nn


class Model(nn.Module):
    """logsumexp(max(sum(linear(x)))): the last two reduce an axis of size 1."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.sum(self.linear(x), dim=1, keepdim=True)
        x = torch.max(x, dim=1, keepdim=True)[0]
        return torch.logsumexp(x, dim=1, keepdim=True)


BATCH, INPUTS, OUTPUTS = 1024, 1024, 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, INPUTS)]


def get_init_inputs() -> list[int]:
    return [INPUTS, OUTPUTS]
