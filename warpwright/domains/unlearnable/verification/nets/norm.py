"""Batch normalisation with what follows it: in kernels of our own on a GPU, by torch's functions elsewhere."""

from __future__ import annotations

import functools
import importlib.util
import warnings

import torch
from torch import nn
from torch.nn import functional as F

_kernels = importlib.util.find_spec("triton") is not None


def use_kernels(wanted: bool) -> bool:
    """Say whether networks that are called from now on use the kernels, where they can; return whether they did before."""
    global _kernels
    before, _kernels = _kernels, wanted
    return before


def kernels_used(device: torch.device) -> bool:
    """Do networks in training on this device use the kernels?"""
    return _kernels and device.type == "cuda" and _agree(device)


class Norm(nn.BatchNorm2d):
    """relu(batch_norm(x) + plus), each of the latter two where wanted; parameters and buffers are those of nn.BatchNorm2d.

    In training on a GPU the kernels of `norm_kernels` do it, once they were seen to agree with torch's functions there; batches are not counted then
    (the momentum is fixed, so nothing reads their number).
    """

    def __init__(self, channels: int, relu: bool = True) -> None:
        super().__init__(channels)
        self.relu = relu

    def forward(self, x: torch.Tensor, plus: torch.Tensor | None = None) -> torch.Tensor:
        """Return an image of x's shape."""
        if self.training and x.numel() > x.shape[1] and not torch.compiler.is_compiling() and kernels_used(x.device):
            return self.in_kernels(x, plus)
        y = super().forward(x)
        if plus is not None:
            y = y + plus
        return F.relu(y) if self.relu else y

    def in_kernels(self, x: torch.Tensor, plus: torch.Tensor | None) -> torch.Tensor:
        """Return the same from the kernels, whose images are channels last; in training only."""
        from warpwright.domains.unlearnable.verification.nets.norm_kernels import Normalised

        x = x.contiguous(memory_format=torch.channels_last)
        added = None if plus is None else plus.to(x.dtype).contiguous(memory_format=torch.channels_last)
        how = (self.running_mean, self.running_var, added, self.relu, self.eps, self.momentum)
        return Normalised.apply(x, self.weight, self.bias, *how)


_APART = 0.01
"""Largest norm of a difference, relative to the norm of torch's result, in bfloat16: rounding makes 0.004."""


@functools.cache
def _agree(device: torch.device) -> bool:
    """Do the kernels do what torch's functions do, on this device? Tried once a process; where not, a warning says why, and torch's are used."""
    try:
        apart = max(_differences(device))
    except Exception as error:  # Triton raises what its compiler, the C compiler that it calls, and the driver raise
        warnings.warn(f"torch's normalisation is used: the kernels of ours failed: {type(error).__name__}: {str(error)[:200]}", stacklevel=2)
        return False
    if not apart < _APART:
        warnings.warn(f"torch's normalisation is used: the kernels of ours are {apart:.3g} away from it", stacklevel=2)
    return apart < _APART


def _differences(device: torch.device) -> list[float]:
    """Return how far the kernels' image, running values and gradients are from torch's, on random images in bfloat16.

    What is added is large, so that no value comes to lie on the other side of the ReLU's kink by rounding.
    """
    generator = torch.Generator(device).manual_seed(0)
    x, plus, way = (torch.randn(8, 64, 6, 6, generator=generator, device=device) for _ in range(3))
    x, plus, way = (one.to(torch.bfloat16) for one in (x, 8 * plus.sign(), way))
    x, plus = (one.contiguous(memory_format=torch.channels_last).requires_grad_() for one in (x, plus))
    found = []
    with torch.enable_grad(), torch.autocast(device.type, enabled=False):
        for kernels in (True, False):
            own = Norm(64).to(device)
            y = own.in_kernels(x, plus) if kernels else F.relu(nn.BatchNorm2d.forward(own, x) + plus)
            gradients = torch.autograd.grad(y, [x, plus, own.weight, own.bias], way)
            found.append([y.detach(), own.running_mean, own.running_var, *gradients])
    return [float((a.float() - b.float()).norm() / b.float().norm()) for a, b in zip(*found, strict=True)]  # type: ignore[union-attr]
