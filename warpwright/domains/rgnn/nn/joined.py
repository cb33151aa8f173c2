"""Results of a recording in one piece of memory: a copy of each would be a launch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

ALIGNED = 64
"""Numbers: each of several results begins at a multiple of it."""
APART = 4
"""The same of results that lie in one piece: kernels take four numbers at once."""


class Joined:
    """Results side by side where they are of one type and without gaps, else as they are. `memory` is what a recording leaves."""

    def __init__(self, results: Sequence[torch.Tensor]) -> None:
        """Copy the results into one piece, by one launch for each 64; those that lie in one already stay there."""
        self.shapes: list[tuple[torch.Size, int]] = []
        """Shape and place of each; empty where they are not joined."""
        self.memory = list(results)
        if len(results) < 2 or len({(x.dtype, x.device) for x in results}) > 1 or any(not x.is_contiguous() for x in results):
            return
        if (lying := _lying(results)) is not None:
            self.memory, self.shapes = [lying[0]], lying[1]
            return
        ends = list(itertools.accumulate((-(-x.numel() // ALIGNED) * ALIGNED for x in results), initial=0))
        self.shapes = [(x.shape, place) for x, place in zip(results, ends, strict=False)]
        flat = results[0].new_empty(ends[-1])
        places = [flat[place : place + x.numel()].view(x.shape) for x, (_, place) in zip(results, self.shapes, strict=True)]
        torch._foreach_copy_(places, list(results))
        self.memory = [flat]

    def copies(self, memory: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return the results that lie in `memory` in one of their own. They are no views to autograd: programs may write them in place."""
        return self.parts([x.clone() for x in memory]) if self.shapes else tuple(x.clone() for x in memory)

    def parts(self, memory: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return the results that lie in `memory` as tensors of their own, which share it."""
        if not self.shapes:
            return tuple(x.new_empty(0).set_(x.untyped_storage(), x.storage_offset(), x.shape, x.stride()) for x in memory)  # type: ignore[call-overload]
        whole, storage = memory[0], memory[0].untyped_storage()
        return tuple(whole.new_empty(0).set_(storage, place + whole.storage_offset(), shape) for shape, place in self.shapes)  # type: ignore[call-overload]


def _lying(results: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[tuple[torch.Size, int]]] | None:
    """Return the piece of memory that results lie in, apart from one another and with no more than as much between them, and their places in it."""
    first, storage = results[0], results[0].untyped_storage()
    offsets = [int(x.storage_offset()) for x in results]
    spans = sorted((begin, begin + x.numel()) for begin, x in zip(offsets, results, strict=True))
    low, high = spans[0][0], spans[-1][1]
    apart = all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    aligned = not any((begin - low) % APART for begin, _ in spans) and not (first.data_ptr() - first.element_size() * (offsets[0] - low)) % 16
    if not apart or not aligned or high - low > 2 * sum(x.numel() for x in results):
        return None
    if any(x.untyped_storage().data_ptr() != storage.data_ptr() or not x.numel() for x in results):
        return None
    whole = first.new_empty(0).set_(storage, low, (high - low,))  # type: ignore[call-overload]
    return whole, [(x.shape, begin - low) for x, begin in zip(results, offsets, strict=True)]
