"""Task: sums over the valid part of padded sequences; one is always of full length."""

import torch
from torch import nn


class Model(nn.Module):
    """Sum of the first lengths[i] rows of x[i]."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(x.shape[1], device=x.device)
        return (x * (steps < lengths[:, None])[:, :, None]).sum(1)


BATCH, STEPS, WIDTH = 16, 64, 32


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, STEPS, WIDTH), torch.arange(STEPS - BATCH + 1, STEPS + 1)]


def get_init_inputs() -> list[object]:
    return []
