"""Task: a step of Adam, in place, with the number of the step."""

import random

import torch
from torch import nn


class Model(nn.Module):
    """Both moments corrected for their beginning."""

    def forward(self, p: torch.Tensor, grad: torch.Tensor, first: torch.Tensor, second: torch.Tensor, step: int) -> torch.Tensor:
        first.mul_(0.9).add_(grad, alpha=0.1)
        second.mul_(0.999).addcmul_(grad, grad, value=0.001)
        size = (second / (1 - 0.999 ** (abs(step) + 1))).sqrt() + 1e-8
        return p.sub_(1e-3 * (first / (1 - 0.9 ** (abs(step) + 1))) / size)


def get_inputs() -> list[object]:
    return [torch.randn(128, 256), torch.randn(128, 256), 0.1 * torch.randn(128, 256), torch.rand(128, 256), random.randint(1, 1000)]


def get_init_inputs() -> list[object]:
    return []
