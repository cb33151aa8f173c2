"""What a program's own flags permit on a GPU: the operands of a float32 operator rounded to TF32.

torch permits it for convolutions and recurrent layers unless told otherwise (`cudnn.allow_tf32`), for matrix products only if told to
(`matmul.allow_tf32`). Whether a library then picks a TF32 kernel for a shape is an accident, so the error allowed is that of the rounding itself,
worked out here in float64: every other source of error is left out.
"""

from __future__ import annotations

from typing import Any

import torch

from warpwright.tasks.mode import Mode
from warpwright.tf32 import permits

CONVOLUTIONS = {"convolution": (0, 1), "convolution_overrideable": (0, 1)}
RECURRENT = {"_cudnn_rnn": (0, 1)}
PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "addmv": (1, 2), "addbmm": (1, 2)}
"""aten operator: places of the operands that the unit takes."""


def permitted() -> dict[str, tuple[int, ...]]:
    """Return the operators in which this process's flags permit TF32, with the places of their operands."""
    flags: dict[str, tuple[int, ...]] = {}
    for kind, operators in (("conv", CONVOLUTIONS), ("rnn", RECURRENT), ("matmul", PRODUCTS)):
        if permits(kind):
            flags |= operators
    return flags


def round_operand(tensor: torch.Tensor) -> torch.Tensor:
    """Return a float64 tensor's values as a TF32 unit reads them from float32: ten mantissa bits, to the nearest, ties to even."""
    bits = tensor.float().contiguous().view(torch.int32)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
    return torch.where(tensor.isfinite(), rounded.view(torch.float32).double(), tensor)


class RoundedOperands(Mode):
    """Rounds the operands of the operators that it is given."""

    def __init__(self, operators: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.operators = operators
        self.count = 0
        """Operators whose operands were rounded."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        places = self.operators.get(function.overloadpacket.__name__, ())
        self.count += bool(places)
        changed = tuple(_rounded(item) if place in places else item for place, item in enumerate(arguments))
        return function(*changed, **(keywords or {}))


def _rounded(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return [_rounded(inner) for inner in item]
    return round_operand(item) if isinstance(item, torch.Tensor) and item.dtype is torch.float64 else item
