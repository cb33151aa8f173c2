"""Works in place, on temporaries of its own, never on the caller's input."""

import torch
from torch import nn

TASK = "softmax"


class ModelNew(nn.Module):
    """One allocation of the output's size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x - x.amax(dim=1, keepdim=True)
        y.exp_()
        return y.div_(y.sum(dim=1, keepdim=True))
