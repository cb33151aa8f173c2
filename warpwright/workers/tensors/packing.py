"""Many small tensors on their way to another process as one: each that goes by itself is waited for on a GPU, where it is sent and where it is taken.

Of ResNet18's 122 parameters and buffers 112 are small; they were 0.3 s of a look at its state on an H200 that others used too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from warpwright.errors import WorkerProtocol
from warpwright.workers.tensors import exchange

SMALL = 1 << 20
"""Bytes. Larger ones go by themselves: where they lie, without a copy."""

ALIGNED = 16
"""Bytes at a multiple of which each begins."""


def packed(tensors: Mapping[str, Any], put: Callable[[Any], exchange.Descriptor]) -> Any:
    """Return dense tensors by name, encoded: `put` gives the descriptor of those that are large or alone on their device, and of one block of the
    others."""
    import torch

    plain = {name: tensor.detach().resolve_conj().resolve_neg() for name, tensor in tensors.items()}
    flat = {name: exchange.flat_bytes(tensor) for name, tensor in plain.items()}
    device = next((one.device for one in flat.values() if one.is_cuda), None) or next((one.device for one in flat.values()), None)
    small = [name for name, one in flat.items() if one.numel() <= SMALL and one.device == device]
    parts, size = {}, 0
    for name in small:
        header = {"dtype": str(plain[name].dtype).removeprefix("torch."), "shape": list(plain[name].shape), "stride": list(plain[name].stride())}
        parts[name] = {**header, "at": size}
        size += -(-flat[name].numel() // ALIGNED) * ALIGNED
    block = torch.zeros(size, dtype=torch.uint8, device=device)
    for name, part in parts.items():
        block[part["at"] : part["at"] + flat[name].numel()].copy_(flat[name])
    return {"block": put(block), "parts": parts, "others": {name: put(plain[name]) for name in plain if name not in parts}}


def unpacked(data: Any, take: Callable[[exchange.Descriptor], Any]) -> dict[str, Any]:
    """Return the tensors that `packed` encoded, or `exchange.encode` in a dictionary; those of a block share its memory. Nothing is believed."""
    if not isinstance(data, dict) or data.keys() != {"block", "parts", "others"}:
        return dict(exchange.decode(data, take))
    if not all(isinstance(item, dict) for item in data.values()):
        raise WorkerProtocol(f"expected packed tensors, saw {str(data)[:200]}")
    block = take(data["block"])
    found = {name: _part(block, part) for name, part in data["parts"].items()}
    return found | {name: take(item) for name, item in data["others"].items()}


def _part(block: Any, part: Any) -> Any:
    import torch

    if not isinstance(part, dict):
        raise WorkerProtocol(f"expected where a tensor lies in a block, saw {str(part)[:200]}")
    shape, stride, dtype = exchange.told(part)
    size, at = exchange.extent(shape, stride) * dtype.itemsize, part.get("at")
    whole = block.dtype is torch.uint8 and block.dim() == 1
    if not whole or type(at) is not int or at < 0 or at % ALIGNED or at + size > block.numel():
        raise WorkerProtocol(f"expected {size} bytes of a block of {block.numel()}, saw them at {at!r}")
    if not size:
        return torch.empty_strided(shape, stride, dtype=dtype, device=block.device)
    return block[at : at + size].view(dtype).as_strided(shape, stride)
