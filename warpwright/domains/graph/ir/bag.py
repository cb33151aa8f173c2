"""Operators of the IR: the one result of torch.embedding_bag that programs read, and segment_reduce beside where its segments begin.

torch's own embedding_bag has four results, of which the others are for its backward. A file that is written holds torch's calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

NAMESPACE = "warpwright_bags"
MODES = ("sum", "mean", "max")
"""By torch's numbers."""


def _run(
    weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor | None, mode: int, per_sample_weights: torch.Tensor | None,
    include_last_offset: bool, padding_idx: int | None,
) -> torch.Tensor:  # fmt: skip
    return F.embedding_bag(
        indices, weight, offsets, mode=MODES[mode], per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )  # fmt: skip


def _shape(
    weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor | None, mode: int, per_sample_weights: torch.Tensor | None,
    include_last_offset: bool, padding_idx: int | None,
) -> torch.Tensor:  # fmt: skip
    bags = indices.shape[0] if offsets is None else offsets.shape[0] - int(include_last_offset)
    return weight.new_empty(bags, weight.shape[1])


torch.library.define(
    f"{NAMESPACE}::bag",
    "(Tensor weight, Tensor indices, Tensor? offsets, int mode, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> Tensor",
)
torch.library.impl(f"{NAMESPACE}::bag", ("CPU", "CUDA"))(_run)
torch.library.register_fake(f"{NAMESPACE}::bag")(_shape)
BAG = torch.ops.warpwright_bags.bag.default
"""The first result of embedding_bag; without offsets indices have two dimensions, a bag a row."""


torch.library.define(f"{NAMESPACE}::segments", "(Tensor data, str reduce, Tensor lengths, Tensor offsets, bool unsafe, Scalar? initial) -> Tensor")


def _segments(
    data: torch.Tensor, reduce: str, lengths: torch.Tensor, offsets: torch.Tensor, unsafe: bool, initial: float | None
) -> torch.Tensor:  # fmt: skip
    return torch.segment_reduce(data, reduce, lengths=lengths, unsafe=unsafe, initial=initial)


def _shape_of_segments(
    data: torch.Tensor, reduce: str, lengths: torch.Tensor, offsets: torch.Tensor, unsafe: bool, initial: float | None
) -> torch.Tensor:  # fmt: skip
    return data.new_empty(lengths.shape[0], *data.shape[1:])


torch.library.impl(f"{NAMESPACE}::segments", ("CPU", "CUDA"))(_segments)
torch.library.register_fake(f"{NAMESPACE}::segments")(_shape_of_segments)
SEGMENTS = torch.ops.warpwright_bags.segments.default
"""segment_reduce by lengths along the first dimension; a kernel reads where they begin and end, `offsets`, which torch works out for itself."""


def text(target: Any, arguments: Sequence[str]) -> str:
    """Return the Python text of a call of `BAG` or `SEGMENTS`; `arguments` are the texts of the operator's."""
    if target is SEGMENTS:
        data, reduce, lengths, _, unsafe, initial = arguments
        return f"torch.segment_reduce({data}, {reduce}, lengths={lengths}, unsafe={unsafe}, initial={initial})"
    weight, indices, offsets, mode, weights, last, padding = arguments
    options = {"per_sample_weights": weights, "include_last_offset": last, "padding_idx": padding}
    given = [f'mode="{MODES[int(mode)]}"', *(f"{name}={one}" for name, one in options.items() if one not in ("None", "False"))]
    return f"F.embedding_bag({', '.join([indices, weight, *([offsets] if offsets != 'None' else []), *given])})"
