"""Sums and means of a convolution over spatial axes or channels: reduce the input and the kernel, not the output.

Along one axis, kernel index k meets the input positions [a_k, b_k) (every stride-th of them, for a strided convolution), so the sum of the
output over that axis is  sum_k W[k] * S_k  with the box sums  S_k = sum of x over those positions.  With T the sum over everything that any k
meets, and B the few border segments that some k miss,

    sum_k W[k] S_k  =  (sum_k W[k]) T  -  sum_B (sum of W[k] over the k that miss B) (sum of x over B)

so T is one reduction of x and the borders are slices of it. (The form with every S_k of its own has more products of the same size to add up,
and errs three times as much on input with a large mean.) Axes that are not reduced stay a convolution, with T and the borders as channels.

Special cases: stride 1 without padding, transposed: no borders, sum(y) = sum(x) @ sum(W) (notes 2.5, L2-42). Border corrections of L2-44 and the
three-plane form of L2-13. The general form is our own derivation.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, aten, dtype, only_user, shape
from warpwright.domains.graph.techniques import reduction
from warpwright.domains.graph.techniques.convolutions.convolution import Convolution, convolve, convolve_transposed, read, same_form
from warpwright.domains.graph.techniques.reduction import Reduction, read_reduction, reduce
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


@dataclass(frozen=True)
class Box:
    """Input positions first, first + step, ..., `count` of them, and the kernel indices that meet exactly these."""

    first: int
    step: int
    count: int
    taps: tuple[int, ...]


@dataclass(frozen=True)
class Plane:
    """A sum of `x` over some positions, and the kernel indices whose entries it is multiplied by, with a sign."""

    first: int
    step: int
    count: int
    taps: tuple[int, ...]
    sign: int


def boxes(conv: Convolution, axis: int) -> tuple[Box, ...]:
    """Return the boxes of one spatial axis; kernel indices that meet no input are left out."""
    size, out, stride = conv.sizes[axis], conv.out[axis], conv.stride[axis]
    padding, dilation = conv.padding[axis], conv.dilation[axis]
    taps_of: dict[tuple[int, int], list[int]] = {}
    for k in range(conv.kernel[axis]):
        offset = k * dilation - padding
        if conv.transposed:  # o = i * stride + offset in [0, out)
            low = max(0, -(offset // stride))
            high = min(size - 1, (out - 1 - offset) // stride)
            first, count = low, high - low + 1
        else:  # i = o * stride + offset in [0, size)
            low = max(0, -(offset // stride))
            high = min(out - 1, (size - 1 - offset) // stride)
            first, count = low * stride + offset, high - low + 1
        if count > 0:
            taps_of.setdefault((first, count), []).append(k)
    step = 1 if conv.transposed else stride
    return tuple(Box(first, step, count, tuple(taps)) for (first, count), taps in sorted(taps_of.items()))


def _match(node: fx.Node) -> Any:
    red = read_reduction(node)
    conv = read(red.x) if red is not None else None
    if red is None or conv is None or only_user(conv.node) is not node:
        return None
    spatial = tuple(a - 2 for a in red.axes if a >= 2)
    if math.prod(conv.out[a] for a in spatial) == 1:
        return None
    return red, conv, spatial


def _emit(e: Edit, node: fx.Node, match: tuple[Reduction, Convolution, tuple[int, ...]]) -> None:
    red, conv, spatial = match
    at = e.before(node)
    new = collapse(at, conv, spatial, red.mean)
    new = reduce(at, new, tuple(a for a in red.axes if a < 2), True, red.mean)
    e.replace_reshaped(node, new)


def collapse(at: Inserter, conv: Convolution, spatial: tuple[int, ...], mean: bool) -> fx.Node:
    """Insert the sum or mean of a convolution over some of its spatial axes, which keep size 1."""
    rest = tuple(a for a in range(conv.d) if a not in spatial)
    # One number stands for the sum of many, whose rounding errors average out. Where all axes go, what is left is so little that float64 is free.
    wide = not rest and dtype(conv.x) == torch.float32
    x, weight, bias = conv.x, conv.weight, conv.bias
    ranges = {axis: boxes(conv, axis) for axis in spatial}
    plain = tuple(a + 2 for a in spatial if len(ranges[a]) == 1 and ranges[a][0].count == conv.sizes[a])
    x, weight = _total(at, x, plain, wide), _total(at, weight, plain, wide)
    bordered = [axis for axis in spatial if axis + 2 not in plain]
    for axis in bordered:
        planes = _planes(conv, axis)
        x, weight = _plane_sums(at, x, axis + 2, planes, wide), _tap_sums(at, weight, axis + 2, planes, wide)
    count = math.prod(conv.out[a] for a in spatial)
    if wide and bias is not None:
        bias = at.call(aten.to.dtype, bias, torch.float64)
    if mean:
        weight = at.call(aten.mul.Tensor, weight, 1.0 / count)
    elif bias is not None:
        bias = at.call(aten.mul.Tensor, bias, count)
    pairs = [(x, weight)]
    if rest and len(bordered) == 1 and shape(x)[bordered[0] + 2] > 1:  # the large sums apart from the small borders: fewer roundings at full size
        dim = bordered[0] + 2
        last = shape(x)[dim] - 1
        pairs = [tuple(at.call(aten.narrow.default, t, dim, *part) for t in (x, weight)) for part in ((0, 1), (1, last))]  # type: ignore[misc]
    terms: list[fx.Node] = []
    for x, weight in pairs:
        x = _into_channels(at, x, 1, spatial, rest)
        weight = _into_channels(at, weight, 0 if conv.transposed else 1, spatial, rest)
        terms.append(_remaining(at, conv, x, weight, None if terms else bias, rest))
    new = terms[0] if len(terms) == 1 else at.call(aten.add.Tensor, *terms)
    sizes = [1 if a in spatial else n for a, n in enumerate(conv.out)]
    new = at.call(aten.reshape.default, new, [*shape(conv.node)[:2], *sizes])
    return at.call(aten.to.dtype, new, torch.float32) if wide else new


def _total(at: Inserter, tensor: fx.Node, axes: tuple[int, ...], wide: bool) -> fx.Node:
    """Insert the sum over `axes`, kept; `wide` in float64, if it is not in that yet."""
    if not wide or dtype(tensor) == torch.float64:
        return reduce(at, tensor, axes, True, False)
    return at.call(aten.sum.dim_IntList, tensor, list(axes), True, dtype=torch.float64) if axes else tensor


def _widened(at: Inserter, tensor: fx.Node, wide: bool) -> fx.Node:
    return at.call(aten.to.dtype, tensor, torch.float64) if wide and dtype(tensor) != torch.float64 else tensor


def _planes(conv: Convolution, axis: int) -> tuple[Plane, ...]:
    """Return the planes of one axis: for each residue of its stride everything that its kernel indices meet, and what some of them miss."""
    ranges = boxes(conv, axis)
    planes = []
    for residue in sorted({box.first % box.step for box in ranges}):
        group = [box for box in ranges if box.first % box.step == residue]
        step = group[0].step
        spans = [(box.first // step, box.first // step + box.count, box.taps) for box in group]
        low, high = min(a for a, _, _ in spans), max(b for _, b, _ in spans)
        planes.append(Plane(residue + low * step, step, high - low, tuple(k for _, _, taps in spans for k in taps), 1))
        ends = sorted({low, high, *(a for a, _, _ in spans), *(b for _, b, _ in spans)})
        for start, stop in itertools.pairwise(ends):
            missed_by = tuple(k for a, b, taps in spans if not (a <= start and stop <= b) for k in taps)
            if missed_by:
                planes.append(Plane(residue + start * step, step, stop - start, missed_by, -1))
    return tuple(planes)


def _plane_sums(at: Inserter, x: fx.Node, dim: int, planes: tuple[Plane, ...], wide: bool) -> fx.Node:
    """Return `x` with axis `dim` replaced by the sums over its planes."""
    sums = []
    for plane in planes:
        end = plane.first + (plane.count - 1) * plane.step + 1
        if plane.step > 1 and plane.count > 1:
            part = at.call(aten.slice.Tensor, x, dim, plane.first, end, plane.step)
        else:
            part = x if plane.count == shape(x)[dim] else at.call(aten.narrow.default, x, dim, plane.first, plane.count)
        sums.append(_widened(at, part, wide) if plane.count == 1 else _total(at, part, (dim,), wide))
    return sums[0] if len(sums) == 1 else at.call(aten.cat.default, sums, dim)


def _tap_sums(at: Inserter, weight: fx.Node, dim: int, planes: tuple[Plane, ...], wide: bool) -> fx.Node:
    """Return the kernel with axis `dim` replaced by one entry for each plane: the signed sum over the plane's kernel indices."""
    parts = []
    for plane in planes:
        taps = sorted(plane.taps)
        runs = [(taps[0], len(taps))] if taps == list(range(taps[0], taps[-1] + 1)) else [(k, 1) for k in taps]
        whole = runs == [(0, shape(weight)[dim])]
        pieces = [weight] if whole else [at.call(aten.narrow.default, weight, dim, k, length) for k, length in runs]
        piece = pieces[0] if len(pieces) == 1 else at.call(aten.cat.default, pieces, dim)
        piece = _widened(at, piece, wide) if len(taps) == 1 else _total(at, piece, (dim,), wide)
        parts.append(piece if plane.sign > 0 else at.call(aten.neg.default, piece))
    return parts[0] if len(parts) == 1 else at.call(aten.cat.default, parts, dim)


def _into_channels(at: Inserter, tensor: fx.Node, channel: int, spatial: tuple[int, ...], rest: tuple[int, ...]) -> fx.Node:
    """Move the reduced axes just after axis `channel` and merge them into it."""
    sizes = shape(tensor)
    ranges = math.prod(sizes[a + 2] for a in spatial)
    if ranges > 1:
        moved = [a + 2 for a in spatial]
        order = [*range(channel + 1), *moved, *range(channel + 1, 2), *(a + 2 for a in rest)]
        tensor = tensor if order == sorted(order) else at.call(aten.permute.default, tensor, order)
    lead = [n * (ranges if axis == channel else 1) for axis, n in enumerate(sizes[:2])]
    return at.call(aten.reshape.default, tensor, [*lead, *(sizes[a + 2] for a in rest)])


def _remaining(at: Inserter, conv: Convolution, x: fx.Node, weight: fx.Node, bias: fx.Node | None, rest: tuple[int, ...]) -> fx.Node:
    """Insert what is left of the convolution when only the axes `rest` remain spatial."""

    def keep(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[a] for a in rest)

    if rest and conv.transposed:
        paddings = (keep(conv.padding), keep(conv.output_padding))
        return convolve_transposed(at, x, weight, bias, keep(conv.stride), *paddings, keep(conv.dilation), conv.groups)
    if rest:
        return convolve(at, x, weight, bias, keep(conv.stride), keep(conv.padding), keep(conv.dilation), conv.groups)
    if conv.groups == 1:
        return at.call(aten.linear.default, x, at.call(aten.t.default, weight) if conv.transposed else weight, bias)
    x, weight = (at.call(aten.unsqueeze.default, t, -1) for t in (x, weight))
    if conv.transposed:
        return convolve_transposed(at, x, weight, bias, (1,), (0,), groups=conv.groups)
    return convolve(at, x, weight, bias, (1,), (0,), groups=conv.groups)


REDUCE_CONVOLUTION = Rewrite(
    name="reduce_convolution",
    traits=Traits("E"),
    ops=reduction.REDUCTIONS,
    match=_match,
    emit=_emit,
    doc="sum or mean of a (transposed) convolution over spatial axes -> box sums of the input, times the kernel summed over indices with"
    " the same box; the other axes stay a convolution of fewer dimensions. Source: see the module's docstring.",
)


# --- channels ------------------------------------------------------------------------------------------------------------


def _match_channels(node: fx.Node) -> Any:
    red = read_reduction(node)
    conv = read(red.x) if red is not None else None
    if red is None or conv is None or only_user(conv.node) is not node or red.axes != (1,) or conv.groups != 1 or conv.channels == 1:
        return None
    return red, conv


def _emit_channels(e: Edit, node: fx.Node, match: tuple[Reduction, Convolution]) -> None:
    red, conv = match
    at = e.before(node)
    weight = reduce(at, conv.weight, (1 if conv.transposed else 0,), True, red.mean)
    bias = None if conv.bias is None else reduce(at, conv.bias, (0,), True, red.mean)
    new = same_form(at, conv, conv.x, weight, bias)
    if not red.keepdim:
        new = at.call(aten.squeeze.dim, new, 1)
    e.replace(node, new)


REDUCE_CHANNELS = Rewrite(
    name="reduce_channels",
    traits=Traits("E"),
    ops=reduction.REDUCTIONS,
    match=_match_channels,
    emit=_emit_channels,
    doc="sum or mean of a (transposed) convolution over its output channels -> the convolution with the kernel summed over them. Linearity;"
    " own derivation.",
)

TECHNIQUES = (REDUCE_CONVOLUTION, REDUCE_CHANNELS)
