"""Many small tensors on their way to another process or device as one: each that goes by itself is waited for on a GPU, where it is sent and where it
is taken.

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
    plain = {name: tensor.detach().resolve_conj().resolve_neg() for name, tensor in tensors.items()}
    devices = sorted({tensor.device for tensor in plain.values()}, key=lambda device: device.type != "cuda")
    small = {name: tensor for name, tensor in plain.items() if tensor.device == devices[0] and _bytes(tensor) <= SMALL}
    block, parts = _block(small)
    return {"block": put(block), "parts": parts, "others": {name: put(tensor) for name, tensor in plain.items() if name not in small}}


def unpacked(data: Any, take: Callable[[exchange.Descriptor], Any]) -> dict[str, Any]:
    """Return the tensors that `packed` encoded, or `exchange.encode` in a dictionary; those of a block share its memory. Nothing is believed."""
    if not isinstance(data, dict) or data.keys() != {"block", "parts", "others"}:
        return dict(exchange.decode(data, take))
    if not all(isinstance(item, dict) for item in data.values()):
        raise WorkerProtocol(f"expected packed tensors, saw {str(data)[:200]}")
    block = take(data["block"])
    found = {name: _part(block, part) for name, part in data["parts"].items()}
    return found | {name: take(item) for name, item in data["others"].items()}


def moved(tensors: Mapping[str, Any], device: Any) -> dict[str, Any]:
    """Return plain dense tensors of one device on another, as they lie and each in memory of its own. They go as one."""
    import torch

    block, parts = _block(tensors)
    block, there = block.to(device), {}
    for name, tensor in tensors.items():
        there[name] = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
        at = parts[name]["at"]
        exchange.flat_bytes(there[name]).copy_(block[at : at + _bytes(tensor)])
    return there


def inlined(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of a state's tensors to be sent: on the host, fetched together, those that travel inside their descriptor."""
    small = moved({name: tensor for name, tensor in state.items() if _bytes(tensor) <= exchange.INLINE_BYTES}, "cpu")
    return {name: small[name] if name in small else tensor.clone() for name, tensor in state.items()}


def taken(items: Mapping[str, exchange.Descriptor], device: Any) -> dict[str, Any]:
    """Return the tensors of trusted descriptors by name, on a device: those that came inside their descriptor go there together."""
    small = moved({name: exchange.take(item, "cpu") for name, item in items.items() if "data" in item}, device)
    return {name: small[name] if name in small else exchange.take(item, device) for name, item in items.items()}


def _bytes(tensor: Any) -> int:
    return exchange.extent(tensor.shape, tensor.stride()) * int(tensor.dtype.itemsize)


def _block(tensors: Mapping[str, Any]) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Return one block of the bytes of plain dense tensors, gaps included, and what lies where in it."""
    import torch

    parts: dict[str, dict[str, Any]] = {}
    size = 0
    for name, tensor in tensors.items():
        header = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape), "stride": list(tensor.stride())}
        parts[name] = {**header, "at": size}
        size += -(-_bytes(tensor) // ALIGNED) * ALIGNED
    block = torch.zeros(size, dtype=torch.uint8, device=next((tensor.device for tensor in tensors.values()), None))
    for name, part in parts.items():
        flat = exchange.flat_bytes(tensors[name])
        block[part["at"] : part["at"] + len(flat)].copy_(flat)
    return block, parts


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
