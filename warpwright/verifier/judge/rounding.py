"""What rounding alone makes of an answer that is exactly zero: each operator's result is moved at random by up to a unit in the last place.

A bias that a normalisation takes away again leaves zeros where the original happens to add up without an error, or adds up equal numbers by a mean
that is exact for them. A program that sums in another order leaves rounding there, and one that leaves the bias out the few digits that the original
lost: on an H200 KernelBench's 2:79 was refused for 5e-28 in place of 0. What is moved about here is what another order of the sums may do.
"""

from __future__ import annotations

from typing import Any

import torch

from warpwright.tasks.mode import Mode

RUNS = 2

ROUNDING = (
    "add", "sub", "rsub", "mul", "div", "mm", "bmm", "baddbmm", "mv", "dot", "matmul", "linear", "convolution", "cudnn_convolution", "mkldnn",
    "scaled_dot_product", "sum", "mean", "var", "std", "cumsum", "linalg", "norm", "native_", "batch_norm", "cudnn_batch_norm", "exp", "log",
    "softmax", "sigmoid", "tanh", "erf", "gelu", "silu", "sqrt", "rsqrt", "reciprocal", "pow", "avg_pool", "adaptive_avg_pool",
)  # fmt: skip
"""Beginnings of the names of operators that round. What moves, picks or compares values does not: zeros that come of those stay zeros."""


class Rounded(Mode):
    """Moves what operators that round return."""

    def __init__(self, seed: int, device: str) -> None:
        super().__init__()
        self.generator = torch.Generator(device).manual_seed(seed)

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        result = function(*arguments, **(keywords or {}))
        if not function.overloadpacket.__name__.strip("_").startswith(ROUNDING) or function._schema.is_mutable:
            return result
        if isinstance(result, list | tuple):
            return type(result)(self._moved(item) for item in result)
        return self._moved(result)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        moves = torch.rand(value.shape, generator=self.generator, device=value.device).mul_(2).sub_(1)
        return value + value * (moves * torch.finfo(value.dtype).eps).to(value.dtype)
