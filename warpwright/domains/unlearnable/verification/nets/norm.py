"""Batch normalisation with what follows it: in kernels of our own on a GPU, by torch's functions elsewhere."""

from __future__ import annotations

import importlib.util

import torch
from torch import nn
from torch.nn import functional as F

_kernels = importlib.util.find_spec("triton") is not None


def use_kernels(wanted: bool) -> bool:
    """Say whether networks that are called from now on use the kernels, where they can; return whether they did before."""
    global _kernels
    before, _kernels = _kernels, wanted
    return before


class Norm(nn.BatchNorm2d):
    """relu(batch_norm(x) + plus), each of the latter two where wanted; parameters and buffers are those of nn.BatchNorm2d.

    In training on a GPU the kernels of `norm_kernels` do it; batches are not counted there (the momentum is fixed, so nothing reads their number).
    """

    def __init__(self, channels: int, relu: bool = True) -> None:
        super().__init__(channels)
        self.relu = relu

    def forward(self, x: torch.Tensor, plus: torch.Tensor | None = None) -> torch.Tensor:
        """Return an image of x's shape."""
        if _kernels and self.training and x.is_cuda and x.numel() > x.shape[1] and not torch.compiler.is_compiling():
            return self._in_kernels(x, plus)
        y = super().forward(x)
        if plus is not None:
            y = y + plus
        return F.relu(y) if self.relu else y

    def _in_kernels(self, x: torch.Tensor, plus: torch.Tensor | None) -> torch.Tensor:
        from warpwright.domains.unlearnable.verification.nets.norm_kernels import Normalised

        x = x.contiguous(memory_format=torch.channels_last)
        added = None if plus is None else plus.to(x.dtype).contiguous(memory_format=torch.channels_last)
        how = (self.running_mean, self.running_var, added, self.relu, self.eps, self.momentum)
        return Normalised.apply(x, self.weight, self.bias, *how)
