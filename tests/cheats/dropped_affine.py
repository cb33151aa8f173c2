"""Leaves out weight and bias of the normalisation, which are 1 and 0 until somebody loads others.

Seen: L2-85's scale and L2-23's GroupNorm; KernelBench-Verified's known blind spot.
"""

import torch
from torch import nn

ROW = "identity_parameters"
TASK = "layernorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Has the parameters, does not use them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, x.shape[1:], None, None, self.norm.eps)
