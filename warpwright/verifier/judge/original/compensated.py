"""An oracle wider than float64, for tasks whose own type it is: sums and products with twice the digits, rounded to float64 at the end.

A torch dispatch mode takes over the operators in which rounding errors pile up (sums, means, running sums, matrix products) and works them out as
double-doubles: pairs of a float64 and what rounding took from it (Dekker 1971; Ogita, Rump and Oishi 2005, "Accurate sum and dot product").
What works on single elements stays as it is: it is off by a unit in the last place. Beyond MOST_STEPS an operator runs as torch has it, too:
then the oracle is as exact as the original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from warpwright.tasks.mode import Mode

MOST_STEPS = 1 << 14
"""Longest sum: each term is a step of a loop over whole tensors, for running sums and products."""

MOST_WORK = 1 << 30
"""Products of numbers in one matrix product: a second or so on one core."""

SPLITTER = 134217729.0  # 2^27 + 1: splits a float64 into two halves of 26 bits

Pair = tuple[torch.Tensor, torch.Tensor]
"""A sum of two float64 tensors, the second what the first lost."""


def two_sum(a: torch.Tensor, b: torch.Tensor) -> Pair:
    """a + b -> the rounded sum and its rounding error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: torch.Tensor, b: torch.Tensor) -> Pair:
    """a * b -> the rounded product and its rounding error, exactly below 2^996 (Dekker, Veltkamp)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(a: torch.Tensor) -> Pair:
    scaled = a * SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def _add(sum_: Pair, term: torch.Tensor) -> Pair:
    high, low = two_sum(sum_[0], term)
    return high, sum_[1] + low


def total(values: torch.Tensor, axis: int) -> Pair:
    """Return the sum along an axis: halves added to halves, the errors along with them."""
    high = values.movedim(axis, 0)
    low = torch.zeros_like(high)
    while high.shape[0] > 1:
        half = high.shape[0] // 2
        spare = (high[2 * half :], low[2 * half :])
        added, lost = two_sum(high[:half], high[half : 2 * half])
        high = torch.cat([added, spare[0]])
        low = torch.cat([low[:half] + low[half : 2 * half] + lost, spare[1]])
    return (high[0], low[0]) if high.shape[0] else (values.sum(axis), torch.zeros_like(values.sum(axis)))


def running_total(values: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the running sums along an axis."""
    steps = values.movedim(axis, 0)
    out = torch.empty_like(steps)
    held: Pair = (torch.zeros_like(steps[0]), torch.zeros_like(steps[0]))
    for number in range(steps.shape[0]):
        held = _add(held, steps[number])
        out[number] = held[0] + held[1]
    return out.movedim(0, axis)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b of `[..., m, k]` and `[..., k, n]`."""
    shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    held: Pair = (a.new_zeros(shape), a.new_zeros(shape))
    for number in range(a.shape[-1]):
        term, lost = two_product(a[..., :, number, None], b[..., number, None, :])
        high, low = _add(held, term)
        held = (high, low + lost)
    return held[0] + held[1]


class Compensated(Mode):
    """Takes float64 sums and products over."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        rule = RULES.get(function.overloadpacket.__name__)
        tensors = [item for item in arguments if isinstance(item, torch.Tensor)]
        if rule is None or keywords or not tensors or any(tensor.dtype is not torch.float64 or tensor.numel() == 0 for tensor in tensors):
            return function(*arguments, **keywords)
        result = rule(*arguments)
        if result is None or not bool(torch.isfinite(result).all()):
            return function(*arguments, **keywords)
        return result


def _sum(values: torch.Tensor, axes: Any = None, keep: bool = False) -> torch.Tensor:
    chosen = sorted({axis % values.dim() for axis in axes}) if axes else list(range(values.dim()))
    rest = [axis for axis in range(values.dim()) if axis not in chosen]
    flat = values.permute(*rest, *chosen).reshape(*(values.shape[axis] for axis in rest), -1)
    high, low = total(flat, -1)
    out = high + low
    for axis in chosen if keep else ():
        out = out.unsqueeze(axis)
    return out


def _mean(values: torch.Tensor, axes: Any = None, keep: bool = False) -> torch.Tensor:
    added = _sum(values, axes, keep)
    return added / (values.numel() // max(1, added.numel()))


def _cumsum(values: torch.Tensor, axis: int) -> torch.Tensor | None:
    return running_total(values, axis) if values.dim() and values.shape[axis] <= MOST_STEPS else None


def _mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    fits = a.shape[-1] <= MOST_STEPS and a.numel() * b.shape[-1] <= MOST_WORK
    return product(a, b) if fits else None


def _addmm(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    product = _mm(a, b)
    return product if product is None else product + bias


def _mv(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    product = _mm(a if a.dim() > 1 else a[None], b[:, None])
    return product if product is None else product.reshape(a.shape[:-1])


RULES: Mapping[str, Callable[..., torch.Tensor | None]] = {
    "sum": _sum, "mean": _mean, "cumsum": _cumsum, "mm": _mm, "bmm": _mm, "addmm": _addmm, "mv": _mv, "dot": _mv,
}  # fmt: skip
"""By the name of the aten operator."""
