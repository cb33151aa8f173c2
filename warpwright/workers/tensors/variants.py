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

MOST_AT_ONCE = 1 << 24
"""Elements: larger copies are no quicker together."""

WORDS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
"""Types by their bytes: as these, elements of any type can be copied by index and together."""


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
    vary_all(inputs, [seed], [into])
    return into


def vary_all(inputs: Any, seeds: Sequence[int], into: Sequence[Any]) -> None:
    """Write a variant of `inputs` for each of `seeds` into the slots of `into`, which have their form.

    All slots of a tensor are written at once: on a GPU a launch costs more than the kernel.
    """
    import torch

    sources, slots = list(_tensors(inputs)), [list(_tensors(slot)) for slot in into]
    moved = _moved(sources)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    for at, source in enumerate(sources):
        targets = [_flat(slot[at]) for slot in slots]
        if at in moved and source.numel() > 1:
            _move(_flat(source), targets, generators)
        else:
            _copy(targets, [_flat(source)] * len(targets))


def _moved(sources: Sequence[torch.Tensor]) -> set[int]:
    """Return which tensors vary, by number."""
    real = {at for at, source in enumerate(sources) if source.is_floating_point() or source.is_complex()}
    chosen = {at for at in real if not _rises(sources[at])} or real
    return chosen or {at for at, source in enumerate(sources) if _in_no_order(source)}


def _move(source: torch.Tensor, targets: Sequence[torch.Tensor], generators: Sequence[torch.Generator]) -> None:
    """Write into each target the source moved along by a random distance; then, at random places, what lies another distance away."""
    import torch

    count = source.numel()
    distances = [torch.randint(1, count, (2,), generator=generator).tolist() for generator in generators]
    ends = [piece for target, (far, _) in zip(targets, distances, strict=True) for piece in (target[far:], target[:far])]
    _copy(ends, [piece for far, _ in distances for piece in (source[: count - far], source[count - far :])])
    replaced = min(REPLACED, count // 4)
    if replaced:
        places = torch.stack([torch.randint(count, (replaced,), generator=generator) for generator in generators])
        origins = (places + torch.tensor([other for _, other in distances])[:, None]) % count  # two of one place write one value
        places, values = places.to(source.device), source[origins.to(source.device)]
        for target, there, value in zip(targets, places, values, strict=True):
            target.index_copy_(0, there, value)


def _copy(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Copy each of `sources` into its target."""
    import torch

    if not targets:
        return
    if sources[0].device.type == "cpu" or max(map(torch.numel, sources)) > MOST_AT_ONCE:
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)
        return
    torch._foreach_copy_(targets, sources)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor's elements in the order of memory, as plain words; its version counter stays as it is."""
    import torch

    flat = tensor.data.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
    words = WORDS.get(tensor.element_size())
    return flat if words is None else flat.view(getattr(torch, words))


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
