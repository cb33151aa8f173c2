"""What a task's inputs and outputs have to be for a program's to be held against them: dense tensors, numbers, containers of these."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map

from warpwright.errors import TaskError
from warpwright.verifier.judge.original.answers import leaves_of, tensors_of
from warpwright.workers.tensors import exchange
from warpwright.workers.tensors.answer import describer, read, unusual


def expect_readable(inputs: Any, output: Any) -> None:
    """Raise TaskError for inputs or outputs that no worker could take or hand over: sparse, nested, quantised ones, keys that are no words."""
    tensors_of(output)  # raises for what holds itself, which nothing else here may be given
    strange = next((tensor for tensor in tensors_of(inputs) if not _is_dense(tensor)), None)
    if strange is not None:
        hint = "take its parts as inputs, and put it together in the call"
        raise TaskError(f"expected inputs that are dense tensors, saw {unusual(strange)}", hint)
    seen = exchange.foreign(read(describer()(tree_map(_plain, output))))
    if seen:
        raise TaskError(f"expected the original to return tensors, numbers and containers of these, saw {seen}", "wrap the function so that it does")


def lazy_outputs(output: Any) -> list[int]:
    """Return the numbers of the outputs whose conjugation or negation is a mark, done when they are read."""
    leaves = [leaf for _, leaf in leaves_of(output)]
    return [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and (leaf.is_conj() or leaf.is_neg())]


def _is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized


def _plain(item: Any) -> Any:
    """Leave marks, gradients and classes out of it: those of an original are not held against it."""
    if not isinstance(item, torch.Tensor) or not _is_dense(item):
        return item
    return item.detach().resolve_conj().resolve_neg().as_subclass(torch.Tensor)
