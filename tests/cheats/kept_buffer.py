"""Every call writes into one output buffer and returns it: the caller's earlier result changes under its hands.

Seen: five CUDA-L1 programs (L1-22, L2-18, L2-95, L3-33, L3-34).
"""

import torch
from torch import nn

ROW = "kept"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "output_reuse"


class ModelNew(nn.Module):
    """One static buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.out = torch.empty(0)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if self.out.numel() == 0:
            self.out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        torch.mm(a, b, out=self.out)
        return self.out
