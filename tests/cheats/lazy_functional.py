"""Returns a tensor inside functorch's wrapper, whose plain value would be computed on unwrapping.

Own invention: `torch.func` wrappers report type torch.Tensor to Python.
"""

import torch
from torch import nn

ROW = "lazy"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class ModelNew(nn.Module):
    """A batched tensor of an open vmap level that is never closed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._C._functorch._vmap_increment_nesting(1, "error")
        wrapped = torch._C._functorch._add_batch_dim(torch.relu(x).unsqueeze(0), 0, 1)
        torch._C._functorch._vmap_decrement_nesting()
        return wrapped
