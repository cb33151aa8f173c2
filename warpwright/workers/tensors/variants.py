"""Variants of a case's inputs, one for each call of a turn: the judge and the runner make the same ones from a seed.

A turn calls a program many times between two looks at the clock. If its calls had the same inputs, a program could keep its answer; fresh inputs
for each would take the judge longer than the calls. So each call has a variant of one case: in every floating-point tensor all values move along by
a random distance, and some are replaced by others of the same tensor. One whose values rise stays as it is, if there is another. Where there is no
such tensor, integers that are in no order take their part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

REPLACED = 64
"""Values of a tensor that are replaced, at most a quarter of it."""


def like(inputs: Any) -> Any:
    """Return inputs of the same form in memory of their own, not yet filled; what is no tensor stays as it is."""
    import torch
    from torch.utils._pytree import tree_map

    def own(value: Any) -> Any:
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device) if isinstance(value, torch.Tensor) else value

    return tree_map(own, inputs)


def is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether a tensor's elements fill its memory, each at a place of its own: only of such inputs are there variants."""
    expected = 1
    for step, size in sorted(zip(stride, shape, strict=True)):
        if size > 1 and step != expected:
            return False
        expected *= size if size > 1 else 1
    return True


def vary(inputs: Any, seed: int, into: Any) -> Any:
    """Write variant `seed` of `inputs` into `into`, which has their form, and return it."""
    import torch

    pairs = list(zip(_tensors(inputs), _tensors(into), strict=True))
    real = [pair for pair in pairs if pair[0].is_floating_point() or pair[0].is_complex()]
    moved = [pair for pair in real if not _rises(pair[0])] or real
    moved = moved or [pair for pair in pairs if _in_no_order(pair[0])]
    chosen = {id(target) for _, target in moved}
    generator = torch.Generator().manual_seed(seed)
    for source, target in pairs:
        if id(target) in chosen and source.numel() > 1:
            _move(_flat(source), _flat(target), generator)
        else:
            _flat(target).copy_(_flat(source))
    return into


def _move(source: torch.Tensor, target: torch.Tensor, generator: torch.Generator) -> None:
    import torch

    count = source.numel()
    distance = int(torch.randint(1, count, (), generator=generator))
    target[distance:].copy_(source[: count - distance])
    target[:distance].copy_(source[count - distance :])
    replaced = min(REPLACED, count // 4)
    if replaced:
        places, origins = (torch.randint(count, (replaced,), generator=generator).unique() for _ in range(2))
        fewest = min(len(places), len(origins))
        target[places[:fewest].to(target.device)] = source[origins[:fewest].to(source.device)]


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor's elements in the order of memory; its version counter stays as it is."""
    return tensor.data.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def _rises(tensor: torch.Tensor) -> bool:
    """Whether its values rise along its one dimension, as edges of buckets do, which mean nothing out of order."""
    return tensor.dim() == 1 and tensor.numel() > 2 and not tensor.is_complex() and bool((tensor.diff() > 0).all())


def _in_no_order(tensor: torch.Tensor) -> bool:
    import torch

    if tensor.dtype is torch.bool or tensor.numel() < 2:
        return False
    return bool((tensor.flatten().diff() < 0).any())


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    import torch
    from torch.utils._pytree import tree_leaves

    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))
