"""Folds anew when its parameter, of a class of its own, is asked to be written to.

Own invention, written before looking for a check that would see it.
"""

from typing import ClassVar

import torch
from torch import nn

ROW = "folded"
TASK = "linear_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "state_names")


class Telling(nn.Parameter):
    """Notes each function of torch that it is given to."""

    told: ClassVar = [True]

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        cls.told[0] |= getattr(function, "__name__", "").rstrip("_") in ("copy", "mul", "add", "sub", "set", "normal", "fill")
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **(keywords or {}))


class ModelNew(nn.Module):
    """Who writes by other ways is not noticed."""

    def __init__(self, inputs, hidden, scale):
        super().__init__()
        self.weight = Telling(torch.randn(hidden, inputs))
        self.scale, self.folded = scale, None

    def forward(self, x):
        if Telling.told[0] or self.folded is None:
            Telling.told[0] = False
            weight = self.weight.detach().as_subclass(torch.Tensor)
            self.folded = weight.sum(dim=0, keepdim=True).T * (self.scale / 2)
        return torch.matmul(x, self.folded)
