"""Uses the caller's input as scratch space; the output itself is fresh and right.

Seen: as `mutated_input`, in kernels that save a temporary.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "input_mutated"


class ModelNew(nn.Module):
    """The subtraction of the maximum happens in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x -= x.amax(dim=1, keepdim=True)
        y = torch.exp(x)
        return y / y.sum(dim=1, keepdim=True)
