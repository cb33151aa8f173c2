"""Enlarging and shrinking of images as programs: each element reads its neighbours where they lie, at places that follow from its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.cpp.program import FLOATS, Axes, Program, Unsupported, Value
from warpwright.domains.graph.ir import argument, aten, is_tensor, shape, value

NEAREST = (aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec)
NEAREST_EXACT = (aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec, aten._upsample_nearest_exact3d.vec)
LINEAR = (aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec, aten.upsample_trilinear3d.vec)
CUBIC = aten.upsample_bicubic2d.vec
RESAMPLED = (*NEAREST, *NEAREST_EXACT, *LINEAR, CUBIC)


def nearest(p: Program, node: fx.Node) -> Value:
    """The element at the place that torch takes: floor(place * ratio), or from the middle of the element."""
    x, axes, ratios = _read(p, node)
    middle = "0.5f" if node.target in NEAREST_EXACT else "0.f"
    places = [f"nearest({{0}}, {ratio}, {middle}, {size - 1})" for ratio, size in zip(ratios, shape(x)[2:], strict=True)]
    return p.op("{0}", p.sampled(x, axes, dict(enumerate(places, 2))))


def linear(p: Program, node: fx.Node) -> Value:
    """Two neighbours an axis, joined by how far the place lies between them."""
    x, axes, ratios = _read(p, node)
    corners = "true" if argument(node, "align_corners") else "false"
    texts = [f"{{0}}, {ratio}, {corners}" for ratio in ratios]
    ends = [size - 1 for size in shape(x)[2:]]
    shares = [p.function_of_place(axes[d], f"between({text})") for d, text in enumerate(texts, 2)]
    shares = [p.with_axes(share, _along(axes, d)) for d, share in enumerate(shares, 2)]
    rows: list[Value] = []
    for upper in range(2 ** len(ratios)):  # the last axis varies fastest
        steps = [upper >> (len(ratios) - 1 - d) & 1 for d in range(len(ratios))]
        places = {d + 2: f"below({texts[d]}, {ends[d]}, {steps[d]})" for d in range(len(ratios))}
        rows.append(p.sampled(x, axes, places))
    for share in reversed(shares):
        rows = [p.op("(1.f - {2}) * {0} + {2} * {1}", low, high, share, cost=3) for low, high in zip(rows[::2], rows[1::2], strict=True)]
    return rows[0]


def cubic(p: Program, node: fx.Node) -> Value:
    """Four neighbours of four rows, joined by torch's cubic polynomials (A = -0.75): those of a row first. What lies outside is the border's."""
    x, axes, ratios = _read(p, node)
    corners = "true" if argument(node, "align_corners") else "false"
    texts = [f"{{0}}, {ratio}, {corners}" for ratio in ratios]
    ends = [size - 1 for size in shape(x)[2:]]
    down, across = (
        [p.with_axes(p.function_of_place(axes[d], f"cubic_share({texts[d - 2]}, {k})"), _along(axes, d)) for k in range(4)] for d in (2, 3)
    )  # fmt: skip

    def joined(four: Sequence[Value], shares: Sequence[Value]) -> Value:
        return p.op("{0} * {4} + {1} * {5} + {2} * {6} + {3} * {7}", *four, *shares, cost=7)

    def element(row: int, column: int) -> Value:
        places = {d + 2: f"cubic_at({texts[d]}, {ends[d]}, {k})" for d, k in enumerate((row, column))}
        return p.sampled(x, axes, places)

    return joined([joined([element(row, column) for column in range(4)], across) for row in range(4)], down)


def _along(axes: Axes, d: int) -> Axes:
    return tuple(own if i == d else () for i, own in enumerate(axes))


def _read(p: Program, node: fx.Node) -> tuple[fx.Node, Axes, list[str]]:
    """Return the tensor, over which axes the result runs, and for each spatial axis the distance of neighbours in it, as digits."""
    x: Any = node.args[0]
    if not is_tensor(x) or value(x).dtype not in FLOATS or value(node).dtype not in FLOATS:
        raise Unsupported("resampling of what is not float32")
    sizes, given = shape(node), argument(node, "scale_factors")
    aligned = node.target in (*LINEAR, CUBIC) and argument(node, "align_corners")
    ratios = [_ratio(before, after, None if given is None else given[d], aligned) for d, (before, after) in enumerate(_pairs(x, sizes))]
    return x, p.axes_for(sizes, p.dims), [f"{ratio!r}f" for ratio in ratios]


def _pairs(x: fx.Node, sizes: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(shape(x)[2:], sizes[2:], strict=True))


def _ratio(before: int, after: int, factor: float | None, aligned: bool) -> float:
    """Return the distance in float32, worked out as torch does."""
    if aligned:
        ratio = torch.tensor(before - 1.0) / torch.tensor(after - 1.0) if after > 1 else torch.tensor(0.0)
    else:
        ratio = torch.tensor(1.0 / factor) if factor else torch.tensor(float(before)) / torch.tensor(float(after))
    return float(ratio)
