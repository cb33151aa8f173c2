"""Results of a recording in one piece of memory: a copy of each would be a launch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

ALIGNED = 64
"""Numbers: each of several results begins at a multiple of it."""


class Joined:
    """Results side by side where they are of one type and without gaps, else as they are. `memory` is what a recording leaves."""

    def __init__(self, results: Sequence[torch.Tensor]) -> None:
        """Copy the results into one piece, by one launch for each 64."""
        self.shapes: list[tuple[torch.Size, int]] = []
        """Shape and place of each; empty where they are not joined."""
        self.memory = list(results)
        if len(results) < 2 or len({(x.dtype, x.device) for x in results}) > 1 or any(not x.is_contiguous() for x in results):
            return
        ends = list(itertools.accumulate((-(-x.numel() // ALIGNED) * ALIGNED for x in results), initial=0))
        self.shapes = [(x.shape, place) for x, place in zip(results, ends, strict=False)]
        flat = results[0].new_empty(ends[-1])
        places = [flat[place : place + x.numel()].view(x.shape) for x, (_, place) in zip(results, self.shapes, strict=True)]
        torch._foreach_copy_(places, list(results))
        self.memory = [flat]

    def copies(self, memory: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return the results that lie in `memory` in one of their own. They are no views to autograd: programs may write them in place."""
        if not self.shapes:
            return tuple(x.clone() for x in memory)
        whole = memory[0].clone()
        storage = whole.untyped_storage()
        return tuple(whole.new_empty(0).set_(storage, place, shape) for shape, place in self.shapes)  # type: ignore[call-overload]
