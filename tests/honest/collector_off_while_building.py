"""Turns the garbage collector off while it constructs, and on again when that is done, as many a program that makes large tables does."""

import gc

import torch
from torch import nn

TASK = "matmul"


class ModelNew(nn.Module):
    """The collector was off before, which the constructor does not ask."""

    def __init__(self) -> None:
        super().__init__()
        gc.disable()
        try:
            self.table = [[number] for number in range(1000)]
        finally:
            gc.enable()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mm(a, b)
