"""Results of a recorded call that are lent instead of copied: of some recordings of the same call, one runs whose results nobody holds any more."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from warpwright.domains.rgnn.nn.joined import Joined

TURNS = 2
"""Recordings whose results are lent: of `out = step()` in a loop one is still held while the other runs."""


def users(memory: Any) -> int:
    """Return how many tensors, views and other objects have a piece of memory."""
    count: int = torch._C._storage_Use_Count(memory._cdata)
    return count


@functools.cache
def ours() -> int:
    """Return the users of a result's memory when nobody has it: the recording's tensor and the object that is asked. 0: torch counts otherwise."""
    x = torch.empty(1)
    memory = x.untyped_storage()
    alone, view = users(memory), x[:]
    both = users(memory)
    del view
    return alone if both == alone + 1 and users(memory) == alone else 0


class Lent:
    """A recording, and who has its results."""

    def __init__(self, launches: Any, joined: Joined) -> None:
        self.launches, self.joined = launches, joined
        self.memories = [x.untyped_storage() for x in launches.out]

    def free(self) -> bool:
        """Has nobody the results? Views of them, and what autograd has saved of them, share their memory and are counted."""
        return all(users(memory) <= ours() for memory in self.memories)

    def run(self) -> tuple[torch.Tensor, ...]:
        """Return the results of another run, where they lie."""
        self.launches.replay()
        return self.joined.parts(self.launches.out)


def free_of(lent: Sequence[Lent]) -> Lent | None:
    """Return one whose results nobody has; None where all are held."""
    return next((one for one in lent if one.free()), None)
