"""Changes global settings for the time of its call and puts them back, which is what well-behaved code does."""

import torch
from torch import nn

TASK = "matmul"


class ModelNew(nn.Module):
    """Default dtype and number of threads."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
        try:
            torch.set_default_dtype(torch.float64)
            torch.set_num_threads(1)
            return torch.mm(a, b)
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
