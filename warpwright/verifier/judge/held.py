"""The inputs of cases that were made lately: shipping a case, and answering it in one state after another, need the same ones.

To draw 2^20 normal numbers takes 10 ms, and a program meets each of some 25 cases once or more, the first of them ten times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves


class Held:
    """Inputs by case, the latest within so many bytes; the latest one in any case. 0 bytes: that one alone."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[Hashable, tuple[list[Any], list[int], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> list[Any] | None:
        """Return the inputs of a case, unless they are not here, or were written to since: some programs do so on some values alone."""
        if key not in self._kept:
            return None
        inputs, versions, _ = self._kept[key]
        if _versions(inputs) != versions:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return inputs

    def put(self, key: Hashable, inputs: list[Any]) -> None:
        """Keep the inputs of a case. Not those of which nobody could say whether they were written to: inference tensors count no writes."""
        self._kept.pop(key, None)
        tensors = _tensors(inputs)
        if any(tensor.is_inference() for tensor in tensors):
            return
        self._kept[key] = inputs, _versions(inputs), sum(tensor.nbytes for tensor in tensors if tensor.layout is torch.strided)
        total = sum(size for _, _, size in self._kept.values())
        while len(self._kept) > 1 and total > self.budget:
            total -= self._kept.popitem(last=False)[1][2]

    def make_room(self) -> None:
        """Let go of what is there, before other inputs are made, where the latest alone are kept."""
        if not self.budget:
            self._kept.clear()

    def clear(self) -> None:
        """Let go of all."""
        self._kept.clear()


def _tensors(inputs: list[Any]) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]


def _versions(inputs: list[Any]) -> list[int]:
    """Return how often each tensor was written to."""
    return [tensor._version for tensor in _tensors(inputs)]
