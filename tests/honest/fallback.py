"""Tries a fast path that does not exist here and falls back to torch: to be reported perhaps, not forbidden."""

import torch
from torch import nn

TASK = "matmul"


class ModelNew(nn.Module):
    """try / except around an optional package."""

    def __init__(self) -> None:
        super().__init__()
        try:
            from a_kernel_library_that_is_not_there import product
        except ImportError:
            product = torch.mm
        self.product = product

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.product(a, b)
