"""In which precision the original runs: in float64 throughout, in its own, or with its operands rounded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from warpwright.base import Precision
from warpwright.tf32 import tf32_flags

WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64, torch.complex64: torch.complex128}


def widen(value: Any) -> Any:
    """Return floating-point tensors in float64."""
    return tree_map(lambda item: item.to(WIDE[item.dtype]) if isinstance(item, torch.Tensor) and item.dtype in WIDE else item, value)


def clone(value: Any) -> Any:
    """Return the same nested value with its tensors copied, strides kept."""
    return tree_map(lambda item: item.clone() if isinstance(item, torch.Tensor) else item, value)


class Widening(TorchFunctionMode):
    """Turns a program's own casts to narrower floating-point types into casts to float64, so that the oracle is float64 throughout."""

    CASTS = frozenset({"float", "half", "bfloat16"})

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = dict(keywords or {})
        name = getattr(function, "__name__", "")
        if name in self.CASTS and arguments and isinstance(arguments[0], torch.Tensor):
            return arguments[0].double()
        if keywords.get("dtype") in WIDE:
            keywords["dtype"] = WIDE[keywords["dtype"]]
        if name in ("to", "type"):
            arguments = tuple(WIDE.get(item, item) if isinstance(item, torch.dtype) else item for item in arguments)
        return function(*arguments, **keywords)


class Rounding(TorchFunctionMode):
    """Rounds the operands of matrix products and convolutions to TF32, for machines that have no TF32 unit."""

    NAMES = ("matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "conv", "einsum", "dot", "mv", "__matmul__", "attention", "lstm", "gru", "rnn")

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if any(part in getattr(function, "__name__", "") for part in self.NAMES):
            arguments = tree_map(lambda item: round_tf32(item) if isinstance(item, torch.Tensor) else item, arguments)
        return function(*arguments, **(keywords or {}))


def round_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """Return float32 values rounded to TF32's ten mantissa bits, to nearest."""
    if tensor.dtype is not torch.float32:
        return tensor
    return ((tensor.detach().contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def own_precision(precision: Precision, device: str) -> tuple[Any, Callable[[Any], Any]]:
    """Return the context that the original runs in at `precision`, and what is done to its inputs first."""
    if precision == "strict":
        return contextlib.nullcontext(), lambda inputs: inputs
    if precision == "tf32":
        return (tf32_flags(True) if device.startswith("cuda") else Rounding()), lambda inputs: inputs
    rounded = lambda item: item.bfloat16().to(item.dtype) if isinstance(item, torch.Tensor) and item.dtype is torch.float32 else item  # noqa: E731
    return torch.autocast(torch.device(device).type, torch.bfloat16), lambda inputs: tree_map(rounded, inputs)
