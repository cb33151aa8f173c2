"""The tensors that a call hands out: whether they are ordinary ones, copies of them, and which share memory."""

from __future__ import annotations

from typing import Any

import torch

from warpwright.workers.tensors import exchange
from warpwright.workers.tensors.answer import unusual

MOST_COPIES = 1000
MOST_HELD = 4 << 30
"""Bytes of outputs that are copied before a call answers."""


def problem_of(tensor: torch.Tensor) -> str:
    """Return "" for an ordinary tensor with all of its memory, else what it is."""
    problem = unusual(tensor)
    if problem or not tensor.numel():
        return problem
    needed = (tensor.storage_offset() + exchange.extent(tensor.shape, tensor.stride())) * tensor.element_size()
    held = tensor.untyped_storage().nbytes()
    return f"a tensor of {needed} bytes in a storage of {held}" if needed > held else ""


def copies_of(value: Any) -> dict[int, torch.Tensor]:
    """Return a copy of each tensor in plain containers by its id, byte for byte with its gaps; none where they are too large.

    It is quick (8 us a tensor on a CPU): what is launched before it is over is in the copy.
    """
    tensors: list[torch.Tensor] = []
    waiting: list[Any] = [value]
    while waiting and len(tensors) < MOST_COPIES:
        item = waiting.pop()
        if type(item) is torch.Tensor:
            tensors.append(item)
        elif issubclass(type(item), tuple):  # torch's named results, too
            waiting += tuple.__iter__(item)
        elif type(item) is list:
            waiting += item
        elif type(item) is dict:
            waiting += item.values()
    try:
        if sum(tensor.untyped_storage().nbytes() for tensor in tensors) > MOST_HELD:
            return {}
        return {id(tensor): _copy(tensor) for tensor in tensors}
    except Exception:  # no memory for them, or whatever a program answers with in place of tensors: `export` says what it is
        return {}


def views_of(value: Any) -> Any:
    """Return plain containers with a view in place of each tensor, which keeps its memory and not the object; anything else as it is."""
    if type(value) is torch.Tensor:
        return value.detach()
    if type(value) in (list, tuple):
        return type(value)(map(views_of, value))
    if type(value) is dict:
        return {key: views_of(item) for key, item in value.items()}
    return value


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone() if tensor.is_contiguous() and not tensor.storage_offset() else exchange.copied(tensor)


def lies(tensor: torch.Tensor) -> bool:
    """Whether a tensor is elements in memory: a lazy parameter has none yet, a sparse tensor is several."""
    return not torch.nn.parameter.is_lazy(tensor) and tensor.layout is torch.strided


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.numel() == 0 or other.numel() == 0 or one.device != other.device or other.layout is not torch.strided:
        return False
    first, second = one.data_ptr(), other.data_ptr()
    one_bytes, other_bytes = (exchange.extent(item.shape, item.stride()) * item.element_size() for item in (one, other))
    return first < second + other_bytes and second < first + one_bytes
