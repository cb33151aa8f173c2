"""What rounding alone makes of an answer that is exactly zero: each operator's result is moved at random by up to a unit in the last place.

A bias that a normalisation takes away again leaves zeros where the original happens to add up without an error, or adds up equal numbers by a mean
that is exact for them. A program that sums in another order leaves rounding there, and one that leaves the bias out the few digits that the original
lost: on an H200 KernelBench's 2:79 was refused for 5e-28 in place of 0. What is moved about here is what another order of the sums may do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from warpwright.tasks.mode import Mode

RUNS = 6
"""Which of two is nearer goes the other way in about half of them, where rounding decides."""

ROUNDING = (
    "add", "sub", "rsub", "mul", "div", "mm", "bmm", "baddbmm", "mv", "dot", "matmul", "linear", "convolution", "cudnn_convolution", "mkldnn",
    "scaled_dot_product", "sum", "mean", "var", "std", "cumsum", "linalg", "norm", "native_", "batch_norm", "cudnn_batch_norm", "exp", "log",
    "softmax", "sigmoid", "tanh", "erf", "gelu", "silu", "sqrt", "rsqrt", "reciprocal", "pow", "avg_pool", "adaptive_avg_pool",
    "cdist", "euclidean_dist",
)  # fmt: skip
"""Beginnings of the names of operators that round. What moves, picks or compares values does not: zeros that come of those stay zeros."""

MOVING = ("expand", "native_channel_shuffle")
"""Names that begin as one of those do."""

ELEMENTWISE = ("add", "sub", "rsub", "mul")
EXACT = (*ELEMENTWISE, "mm", "bmm", "baddbmm", "mv", "dot", "matmul", "linear", "sum", "cumsum")
"""Operators of which whole numbers give whole numbers, in any order: three votes are three, and `votes > 3` is wrong where `votes >= 3` was asked."""


class Rounded(Mode):
    """Moves what operators that round return."""

    def __init__(self, seed: int, device: str) -> None:
        super().__init__()
        self.generator = torch.Generator(device).manual_seed(seed)

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        result = function(*arguments, **(keywords or {}))
        name = function.overloadpacket.__name__.strip("_")
        if not name.startswith(ROUNDING) or name.startswith(MOVING) or function._schema.is_mutable or function.is_view:
            return result
        if name.startswith(EXACT) and _are_whole(tree_leaves((arguments, keywords)), name.startswith(ELEMENTWISE)):
            return result
        if isinstance(result, list | tuple):
            return type(result)(self._moved(item) for item in result)
        return self._moved(result)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        moves = torch.rand(value.shape, generator=self.generator, device=value.device).mul_(2).sub_(1)
        return value + value * (moves * torch.finfo(value.dtype).eps).to(value.dtype)


def _are_whole(operands: Iterable[Any], elementwise: bool) -> bool:
    """Whether tensors and numbers are whole ones, and so small that their products, added up, are exact in the coarsest of the dtypes."""
    largest, terms, steps = 1.0, 1, 0.0
    for one in operands:
        if isinstance(one, torch.Tensor) and one.numel():
            if one.layout is not torch.strided or one.is_complex():
                return False
            if one.is_floating_point() and (one.dtype.itemsize < 2 or not torch.equal(one, one.round())):
                return False
            largest *= max(2.0, abs(float(one.amin())), abs(float(one.amax())))
            terms = max(terms, one.numel())
            steps = max(steps, torch.finfo(one.dtype).eps if one.is_floating_point() else 0.0)
        elif isinstance(one, int | float) and not isinstance(one, bool):
            if not math.isfinite(one) or one != int(one):
                return False
            largest *= max(2.0, abs(float(one)))
    return largest * (1 if elementwise else terms) * steps <= 1
