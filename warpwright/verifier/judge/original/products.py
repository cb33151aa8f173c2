"""Transposed convolutions in float64 on a GPU as products of matrices, and few operators on their way at once.

cuDNN's own kernels took 1.7 and 2.8 times as long on an H200 (4 x 4 and 3 x 3 x 3, stride 2), and were once seen at 0.2 TFLOPS, where products of
matrices run on a unit that does 60. Its other convolutions in float64 are as fast as products or up to ten times faster (channels of their own, 11 x
11): they stay (benchmarks/results/kernelbench_draw_h200). A judge works such an answer out some fifty times a task.

A transposed convolution is a sum over the places of its window: a matrix of weights for each place, times the input, added to the result moved by
it. A few places make one product, so that its size fills the unit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from warpwright.tasks.mode import Mode

OUTER = 64
"""Places of a window are joined until the product has so many rows."""

PART_BYTES = 1 << 30
"""Of the matrices that are made of some samples' places at once."""

ON_THEIR_WAY = 16
"""Operators that a judge sends to a GPU before it waits for them: so few run on when it is stopped because somebody wants to time."""


class WideProducts(Mode):
    """Works transposed convolutions of float64 tensors on a GPU out as products; everything else as it is, a few operators at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        self.sent += 1
        if self.sent % ON_THEIR_WAY == 0 and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        if function is torch.ops.aten.convolution.default and not keywords and arguments[6] and _is_wide(*arguments[:2]):
            x, weight, bias, stride, padding, dilation, _, more, groups = arguments
            return transposed(x, weight, bias, stride, padding, dilation, more, groups)
        return function(*arguments, **(keywords or {}))


def _is_wide(x: torch.Tensor, weight: torch.Tensor) -> bool:
    return x.is_cuda and x.dtype is torch.float64 is weight.dtype and x.numel() > 0


def transposed(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    more: Sequence[int], groups: int,
) -> torch.Tensor:  # fmt: skip
    """Return `aten.convolution`, transposed, of x [samples, channels, sizes ...] in x's own precision, contiguous; `more`: output_padding."""
    axes, window, sizes = x.dim() - 2, weight.shape[2:], x.shape[2:]
    stride, padding, dilation, more = (_each(values, axes) for values in (stride, padding, dilation, more))
    full = [(size - 1) * s + d * (k - 1) + 1 + o for size, s, d, k, o in zip(sizes, stride, dilation, window, more, strict=True)]
    result = x.new_zeros(x.shape[0], weight.shape[1] * groups, *full)
    at_once = max(1, OUTER // weight.shape[1])
    count = max(1, PART_BYTES // (8 * groups * weight.shape[1] * at_once * x[0, 0].numel()))
    for part, own in zip(x.split(count), result.split(count), strict=True):
        _spread(part, own, weight, stride, dilation, groups, at_once)
        if x.is_cuda:
            torch.cuda.synchronize(x.device)
    inside: tuple[Any, ...] = (..., *(slice(p, size - p) for p, size in zip(padding, full, strict=True)))
    result = result[inside]
    if bias is not None:
        result += bias.view(-1, *[1] * axes)
    return result.contiguous()


def _each(values: Sequence[int], axes: int) -> list[int]:
    """Return one number an axis; torch takes a single one for all."""
    return list(values) * axes if len(values) == 1 else list(values)


def _spread(
    x: torch.Tensor, result: torch.Tensor, weight: torch.Tensor, stride: Sequence[int], dilation: Sequence[int], groups: int, at_once: int
) -> None:
    """Add the terms of every place of the window to `result`, whose border is not cut off yet."""
    samples, sizes, inner, outer = len(x), x.shape[2:], weight.shape[0] // groups, weight.shape[1]
    right = x.reshape(samples * groups, inner, -1)
    for places in _places(weight.shape[2:], at_once):
        factors = torch.stack([_at(weight, place).view(groups, inner, outer).mT for place in places], 1)  # [groups, places, outer, inner]
        left = factors.reshape(1, groups, -1, inner).expand(samples, -1, -1, -1).reshape(samples * groups, -1, inner)
        terms = torch.bmm(left, right).view(samples, groups, len(places), outer, *sizes)
        for number, place in enumerate(places):
            index: tuple[Any, ...] = (
                ..., *(slice(at * d, at * d + s * (size - 1) + 1, s) for at, d, s, size in zip(place, dilation, stride, sizes, strict=True))
            )  # fmt: skip
            result[index] += terms[:, :, number].reshape(samples, groups * outer, *sizes)


def _places(window: Sequence[int], at_once: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield the places of a window, some at once."""
    every = itertools.product(*map(range, window))
    return iter(lambda: list(itertools.islice(every, at_once)), [])


def _at(weight: torch.Tensor, place: Sequence[int]) -> torch.Tensor:
    """Return the weights of one place of the window."""
    index: tuple[Any, ...] = (..., *place)
    return weight[index]
