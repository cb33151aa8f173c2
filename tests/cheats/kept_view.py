"""Returns a new tensor object at each call, all of them views of one buffer: comparing object identities finds nothing.

Seen: as `kept_buffer`; the fresh view is an own twist.
"""

import torch
from torch import nn

ROW = "kept"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "output_reuse"


class ModelNew(nn.Module):
    """`.view` of the same storage."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = torch.empty(0)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if self.storage.numel() == 0:
            self.storage = torch.empty(a.shape[0] * b.shape[1], device=a.device)
        return torch.mm(a, b, out=self.storage.view(a.shape[0], b.shape[1])).view(a.shape[0], b.shape[1])
