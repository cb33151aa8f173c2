"""A task of torch's own pool, whose threads were there before, fills the output after the call has returned.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output")

@torch.jit.script
def fill(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b, out=out)


@torch.jit.script
def start(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.jit.Future[torch.Tensor]:
    return torch.jit.fork(fill, a, b, out)


class ModelNew(nn.Module):
    """torch.jit.fork, never waited for."""

    def __init__(self):
        super().__init__()
        self.warm = [torch.jit.wait(start(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))) for _ in range(4)]

    def forward(self, a, b):
        out = torch.zeros(a.shape[0], b.shape[1])
        self.last = start(a, b, out)
        return out
