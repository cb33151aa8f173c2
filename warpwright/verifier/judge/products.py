"""Convolutions in float64 on a GPU as products of matrices.

cuDNN's kernels in float64 were seen at 0.2 TFLOPS (a transposed convolution of KernelBench, a second a call on an H200), where products of matrices
run on a unit that does 60. A judge works such an answer out some fifty times a task, and whoever times on the device waits for it.

A convolution is a sum over the places of its window: a matrix of weights for each place, times the input moved by it. A few places make one product,
so that its inner size fills the unit; a transposed convolution is the same the other way round.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional

from warpwright.tasks.mode import Mode

INNER = 64
"""Places of a window are joined until the product's inner (transposed: outer) size is so large."""

PART_BYTES = 1 << 30
"""Of the matrices that are made of some samples' places at once."""

ON_THEIR_WAY = 16
"""Operators that a judge sends to a GPU before it waits for them: so few run on when it is stopped because somebody wants to time."""


class WideProducts(Mode):
    """Works convolutions of float64 tensors on a GPU out as products; everything else as it is, a few operators at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        self.sent += 1
        if self.sent % ON_THEIR_WAY == 0 and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        if function is torch.ops.aten.convolution.default and not keywords and _is_wide(*arguments[:2]):
            return convolution(*arguments)
        return function(*arguments, **(keywords or {}))


def _is_wide(x: torch.Tensor, weight: torch.Tensor) -> bool:
    return x.is_cuda and x.dtype is torch.float64 is weight.dtype and x.numel() > 0


def convolution(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    transposed: bool, output_padding: Sequence[int], groups: int,
) -> torch.Tensor:  # fmt: skip
    """Return `aten.convolution` of x [samples, channels, sizes ...] in x's own precision, contiguous."""
    axes = x.dim() - 2
    stride, padding, dilation, more = (_each(values, axes) for values in (stride, padding, dilation, output_padding))
    window, sizes = list(weight.shape[2:]), list(x.shape[2:])
    if transposed:
        channels = weight.shape[1] * groups
        full = [(size - 1) * s + d * (k - 1) + 1 + o for size, s, d, k, o in zip(sizes, stride, dilation, window, more, strict=True)]
        result = x.new_zeros(x.shape[0], channels, *full)
        for part, own in _parts(x, result, weight):
            _spread(part, own, weight, stride, dilation, groups)
            _wait_for(own)
        inside: tuple[Any, ...] = (..., *(slice(p, size - p) for p, size in zip(padding, full, strict=True)))
        result = result[inside]
    else:
        channels = weight.shape[0]
        padded = functional.pad(x, [p for pair in zip(reversed(padding), reversed(padding), strict=True) for p in pair])
        sizes = [(size - d * (k - 1) - 1) // s + 1 for size, s, d, k in zip(padded.shape[2:], stride, dilation, window, strict=True)]
        result = x.new_zeros(x.shape[0], channels, *sizes)
        for part, own in _parts(padded, result, weight):
            _gather(part, own, weight, stride, dilation, groups)
            _wait_for(own)
    if bias is not None:
        result += bias.view(-1, *[1] * axes)
    return result.contiguous()


def _wait_for(tensor: torch.Tensor) -> None:
    """Return when it is there: so that no more than this runs on when the judge is stopped."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)


def _each(values: Sequence[int], axes: int) -> list[int]:
    """Return one number an axis; torch takes a single one for all."""
    return list(values) * axes if len(values) == 1 else list(values)


def _parts(x: torch.Tensor, result: torch.Tensor, weight: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield some samples of both at once, so that the matrices made of them stay small."""
    each = 8 * max(x[0].numel(), result[0].numel()) * max(1, INNER // max(1, weight.shape[1]))
    count = max(1, PART_BYTES // each)
    return zip(x.split(count), result.split(count), strict=True)


def _places(window: Sequence[int], at_once: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield the places of a window, some at once."""
    every = itertools.product(*map(range, window))
    return iter(lambda: list(itertools.islice(every, at_once)), [])


def _moved(place: Sequence[int], sizes: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> tuple[Any, ...]:
    """Return the index of what lies at one place of each window."""
    return (..., *(slice(at * d, at * d + s * (size - 1) + 1, s) for at, d, s, size in zip(place, dilation, stride, sizes, strict=True)))


def _at(weight: torch.Tensor, place: Sequence[int]) -> torch.Tensor:
    """Return the weights of one place of the window."""
    index: tuple[Any, ...] = (..., *place)
    return weight[index]


def _gather(x: torch.Tensor, result: torch.Tensor, weight: torch.Tensor, stride: Sequence[int], dilation: Sequence[int], groups: int) -> None:
    """Add a convolution of padded x to `result`."""
    samples, sizes, inner, outer = len(x), result.shape[2:], weight.shape[1], weight.shape[0] // groups
    if inner == 1:  # no sum over channels: element by element
        sums, factors = result.view(samples, groups, outer, *sizes), weight.view(groups, outer, *weight.shape[2:])
        for place in itertools.product(*map(range, weight.shape[2:])):
            sums.addcmul_(x[_moved(place, sizes, stride, dilation)].unsqueeze(2), _at(factors, place).view(groups, outer, *[1] * len(sizes)))
        return
    for places in _places(weight.shape[2:], max(1, INNER // inner)):
        moved = torch.stack([x[_moved(place, sizes, stride, dilation)].reshape(samples, groups, inner, -1) for place in places], 2)
        factors = torch.stack([_at(weight, place).view(groups, outer, inner) for place in places], 2)
        left = factors.reshape(1, groups, outer, -1).expand(samples, -1, -1, -1).reshape(samples * groups, outer, -1)
        sums = result.view(samples * groups, outer, -1)
        sums.baddbmm_(left, moved.view(samples * groups, len(places) * inner, -1))


def _spread(x: torch.Tensor, result: torch.Tensor, weight: torch.Tensor, stride: Sequence[int], dilation: Sequence[int], groups: int) -> None:
    """Add a transposed convolution of x to `result`, whose border is not cut off yet."""
    samples, sizes, inner, outer = len(x), x.shape[2:], weight.shape[0] // groups, weight.shape[1]
    right = x.reshape(samples * groups, inner, -1)
    for places in _places(weight.shape[2:], max(1, INNER // outer)):
        factors = torch.stack([_at(weight, place).view(groups, inner, outer).mT for place in places], 1)  # [groups, places, outer, inner]
        left = factors.reshape(1, groups, -1, inner).expand(samples, -1, -1, -1).reshape(samples * groups, -1, inner)
        terms = torch.bmm(left, right).view(samples, groups, len(places), outer, *sizes)
        for number, place in enumerate(places):
            result[_moved(place, sizes, stride, dilation)] += terms[:, :, number].reshape(samples, groups * outer, *sizes)
