"""Rows and parameters of several node types: side by side in one tensor, or each where it lies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.emit.own.kinds import Kinds, apart
from warpwright.domains.rgnn.emit.own.kinds import kinds as by_kind


def side_by_side(*groups: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return weights, biases, gates and others of all types as one tensor each, [types, ...]; all are copied by one launch for each 128."""
    flat = torch.cat([x.reshape(-1) for group in groups for x in group])
    sizes = [sum(x.numel() for x in group) for group in groups]
    return [part.view(len(group), *group[0].shape) for part, group in zip(flat.split(sizes), groups, strict=True)] + [flat[:0]] * (3 - len(groups))


def kernels_for(rows: torch.Tensor, counts: Sequence[int], columns: int) -> Kinds | None:
    """Return the kernels for such rows of types of so many nodes, where they take them; results have so many columns."""
    return by_kind(rows, tuple(counts), columns)


def by_type(given: Sequence[torch.Tensor], counts: Sequence[int]) -> Sequence[torch.Tensor]:
    """Return the rows of each node type, of which all may be given as one tensor."""
    return given if len(given) == len(counts) else given[0].split(list(counts))


FEW = 1 << 18
"""Nodes below which launches decide: a type's three products are one, and their results are copied apart."""


def are_few(counts: Sequence[int]) -> bool:
    """Is it a small graph, whose time is that of its launches?"""
    return sum(counts) < FEW


def of_kinds(counts: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each node's type [N], and a matrix [types, N] of ones where a node is of a type: a product with it sums over the nodes of each type."""
    return indices.mention(_of_kinds(counts, device, dtype))


@functools.lru_cache(maxsize=16)
def _of_kinds(counts: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    kinds = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)).to(device)
    return kinds, (torch.arange(len(counts), device=device)[:, None] == kinds).to(dtype)


class Together(torch.autograd.Function):
    """Rows of all node types in one tensor."""

    @staticmethod
    def forward(ctx: Any, *rows: torch.Tensor) -> torch.Tensor:
        """Return the rows of the types, one after another."""
        ctx.counts = [x.shape[0] for x in rows]
        return laid(rows, ctx.counts, range(len(rows)))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the parts of the gradient."""
        return gradient.split(ctx.counts)


FEW_PARTS = 8
"""Tensors up to which torch.cat takes less time than a copy of each, where there is no kernel of ours: 3 us for 7 of aifb's graph, and 16."""


def laid(parts: Sequence[torch.Tensor], counts: Sequence[int], own: Sequence[int]) -> torch.Tensor:
    """Return rows of the types `own`, each at its place among the rows of all types; other types' rows are not written."""
    if len(parts) == len(counts) == 1:
        return parts[0].contiguous()
    kernels = kernels_for(parts[0], counts, parts[0].shape[1])
    whole = None if kernels is None else replace(kernels, chosen=tuple(own)).together(parts)
    if whole is not None:
        return whole
    if len(parts) == len(counts) <= FEW_PARTS:
        return torch.cat(list(parts))
    whole = parts[0].new_empty(sum(counts), *parts[0].shape[1:])
    places = whole.split(list(counts))
    torch._foreach_copy_([places[kind] for kind in own], list(parts))
    return whole


def in_place(rows: Sequence[torch.Tensor], counts: Sequence[int], columns: int) -> bool:
    """Are rows of a small graph's types read where they lie? A backward would read them at one place: so where there is none, and kernels take them.

    To put bgs' 24 MB together takes an H200 about as long as a tenth of the layer's forward.
    """
    plain = not torch.is_grad_enabled() and apart(rows)
    return plain and kernels_for(rows[0], counts, columns) is not None
