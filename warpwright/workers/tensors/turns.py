"""The inputs of one turn of many calls, made by the parent once for all programs of a pass, and written into their stopped processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.workers.tensors import exchange, variants


@dataclass(frozen=True)
class Turn:
    """One variant of shipped inputs for each seed; `calls` has the tensors of each."""

    inputs: Any
    seeds: tuple[int, ...]
    calls: tuple[tuple[Any, ...], ...]

    @property
    def tensors(self) -> list[Any]:
        """All tensors, call by call."""
        return [tensor for call in self.calls for tensor in call]


def make(inputs: Any, seeds: Sequence[int]) -> Turn:
    """Return the turn of shipped inputs on the CPU."""
    base = [exchange.take(item, "cpu") for item in exchange.descriptors(inputs)]
    calls = [variants.like(base) for _ in seeds]
    variants.vary_all(base, seeds, calls)
    return Turn(inputs, tuple(seeds), tuple(map(tuple, calls)))
