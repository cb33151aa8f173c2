"""Stops at the first column where every running product is exactly zero and all inputs to come are finite: guarded, so exact."""

import torch
from torch import nn

TASK = "cumprod"


class ModelNew(nn.Module):
    """Blocks of 128 columns; the guard reads the rest of the row only when it would be skipped."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        carry = torch.ones(x.shape[0], device=x.device)
        for start in range(0, x.shape[1], 128):
            block = x[:, start : start + 128].clone()
            block[:, 0] *= carry
            out[:, start : start + 128] = torch.cumprod(block, dim=1)
            carry = out[:, min(start + 127, x.shape[1] - 1)]
            rest = x[:, start + 128 :]
            if not bool(carry.any()) and bool(torch.isfinite(rest).all()) and not bool(torch.signbit(x).any()):
                break
        return out
