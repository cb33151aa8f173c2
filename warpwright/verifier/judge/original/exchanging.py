"""Two elements of a tensor exchanged, so that its sum stays the same: a change of the state that a cache of sums does not see."""

from __future__ import annotations

import torch

EXCHANGE_TRIES = 16
"""Other lines, and pairs further inside, that are tried: first for one that leaves the tensor's sum the same to the bit as torch rounds it."""


def exchange_two(tensor: torch.Tensor, in_row: bool, ends: bool, seed: int) -> bool:
    """Exchange two elements of one row or column in place, at its ends in order of size or a quarter from them; False where all seem alike.

    A row is what belongs to one index of the first dimension; a tensor of one dimension is one row.
    """
    if tensor.numel() < 2 or tensor.dtype == torch.bool or tensor.is_complex() or not tensor.is_contiguous():
        return False
    table = tensor.view(tensor.shape[0], -1) if tensor.dim() > 1 else tensor.view(1, -1)
    if (in_row and table.shape[1] > 1) or table.shape[0] == 1:
        table = table.t()
    found, total = None, tensor.sum()
    for attempt in range(EXCHANGE_TRIES):  # each column of `table` is a line now
        line = table[:, (seed + 104729 * attempt) % table.shape[1]]
        order, quarter = line.argsort(), 0 if ends else min(len(line) // 4 + attempt // 2, (len(line) - 1) // 2)
        places = (order[quarter], order[-1 - quarter])
        if not bool(line[places[1]] > line[places[0]]):
            continue
        _swap(line, *places)
        if torch.equal(tensor.sum(), total):
            return True
        _swap(line, *places)
        found = found or (line, *places)
    if found:
        _swap(*found)
    return found is not None


def _swap(line: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> None:
    line[low], line[high] = line[high].clone(), line[low].clone()
