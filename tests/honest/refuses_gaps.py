"""Takes dense inputs only and says so of others, as many kernels do: that is no wrong answer.

Own invention.
"""

import torch
from torch import nn

TASK = "softmax"


class ModelNew(nn.Module):
    """Raises where a stride is not what it expects."""

    def forward(self, x):
        if not x.is_contiguous():
            raise ValueError(f"expected a dense input, saw strides {x.stride()}")
        return torch.softmax(x.view(-1, x.shape[1]), dim=1)
