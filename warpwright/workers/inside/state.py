"""A program's module: its mode of training, and its parameters and buffers, taken from where they lie."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from warpwright.workers.tensors.answer import state_text
from warpwright.workers.tensors.exchange import flat_bytes


def set_mode(module: torch.nn.Module, training: bool | None, apart: Sequence[str]) -> None:
    """Put a module into a mode of training, None for the one that it has, and its parts of these paths into the other, as the original's are."""
    if training is None:
        return
    module.train(training)
    parts = dict(module.named_modules())
    for path in apart:
        if path in parts:
            parts[path].training = not training


def held_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters and persistent buffers as plain tensors."""
    return {name: tensor.data for name, tensor in state_of(module).items()}


def state_places(module: torch.nn.Module) -> list[list[Any]]:
    return [state_text(name, tensor) for name, tensor in state_of(module).items() if tensor.device.type == "cpu"]


PIECE = 64 << 20
"""Bytes that are compared at once: on a GPU that takes as many again, of the memory that the program has."""


def versioned(module: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> OrderedDict[str, torch.Tensor]:
    """Return a state with the versions of the module's parts, as `state_dict` gives them: some load none without (torchvision's MNASNet)."""
    made: Any = OrderedDict(state)
    made._metadata = OrderedDict((path, {"version": getattr(part, "_version", None)}) for path, part in module.named_modules(remove_duplicate=False))
    return made  # type: ignore[no-any-return]


def restored(module: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> bool:
    """Write the tensors whose bits are others than in `state` in place; False, with nothing written, where `state` is not of this module's form."""
    own = state_of(module)
    if own.keys() != state.keys() or any(_form(own[name]) != _form(kept) for name, kept in state.items()):
        return False
    for name, kept in state.items():
        if not _same_bits(own[name], kept):
            own[name].copy_(kept)
    return True


def _form(tensor: torch.Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return tensor.shape, tensor.dtype, tensor.device


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    plain = one.detach().resolve_conj().resolve_neg()  # a buffer that a call replaced may be conjugated by a mark alone
    pieces = (flat_bytes(tensor.contiguous()).split(PIECE) for tensor in (plain, other))
    return all(torch.equal(here, there) for here, there in zip(*pieces, strict=True))


def state_of(module: torch.nn.Module, prefix: str = "") -> dict[str, torch.Tensor]:
    """Return parameters and persistent buffers by name, taken from where they lie: a program may override state_dict()."""
    state: dict[str, torch.Tensor] = {prefix + name: tensor for name, tensor in _items(module._parameters) if tensor is not None}
    hidden = module._non_persistent_buffers_set
    state |= {prefix + name: tensor for name, tensor in _items(module._buffers) if tensor is not None and name not in hidden}
    for name, child in _items(module._modules):
        if child is not None:
            state |= state_of(child, f"{prefix}{name}.")
    return state


_SCRIPTED = (torch._C.ParameterDict, torch._C.BufferDict)  # type: ignore[attr-defined]
_WRAPPER, _CHILDREN = torch.jit._script.OrderedDictWrapper, torch.jit._script.OrderedModuleDict


def _items(holder: Any) -> Any:
    """Return the items of what a module holds its parts in: a dictionary, or what a script module has in its place."""
    kind = type(holder)
    if kind is _CHILDREN:
        return dict.items(vars(holder)["_python_modules"])
    if kind is _WRAPPER and type(inner := vars(holder)["_c"]) in _SCRIPTED:
        return type(inner).items(inner)
    return dict.items(holder)
