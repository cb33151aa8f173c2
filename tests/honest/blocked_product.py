"""The same product in four blocks of the inner dimension: another order of summation."""

import torch
from torch import nn

TASK = "matmul"


class ModelNew(nn.Module):
    """Accumulates with addmm_."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(a.shape[0], b.shape[1], device=a.device)
        for left, right in zip(a.chunk(4, dim=1), b.chunk(4, dim=0), strict=True):
            out.addmm_(left, right)
        return out
