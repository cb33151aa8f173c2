"""Pools merged with what stands before them: a convolution and an average pool are one convolution, two pools are one pool.

Along one axis, output o of a convolution obeys  i = o*s - p + k*d,  of a transposed one  i*s = o + p - k*d. With o = j*t + a, a in [0, q), for
the pool of width q and stride t:

    convolution      i   = j*(s*t) + u,   u = a*s + k*d - p
    transposed       i*s = j*t     + u,   u = a + p - k*d;  where s divides t, divide by s: only u that it divides occur

so the pair is one ordinary convolution with a kernel entry for each u, the mean over the q offsets a of the kernel entries that give it.
Sources: notes 2.5 (L2-50, 65, 72, 78); general form, own derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, aten, only_user, shape
from warpwright.domains.graph.techniques.convolutions.convolution import Convolution, correlate, read, swap_channels
from warpwright.domains.graph.techniques.reduction import AVERAGE_POOLS, MAX_POOLS, Pool, read_average_pool, read_max_pool
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


@dataclass(frozen=True)
class Merged:
    """One axis of a convolution with its pool: i = j * down + u; entry number v, counted from `first`, is the mean of a window of the kernel."""

    down: int
    """Stride of the merged convolution."""
    first: int
    """Smallest u."""
    entries: int
    """How many u."""
    window: int
    """Kernel entries in a window, the first at index `start` + v * `step` of the kernel (outside: zero), `every` apart."""
    start: int
    step: int
    every: int
    out: int


def merge_axis(conv: Convolution, axis: int, width: int, stride: int) -> Merged | None:
    """Return the merged axis, or None where this form does not hold (dilated kernels, strides that do not divide)."""
    s, p, d, kernel = conv.stride[axis], conv.padding[axis], conv.dilation[axis], conv.kernel[axis]
    out = (conv.out[axis] - width) // stride + 1
    if d != 1 and (kernel > 1 and width > 1):
        return None
    if not conv.transposed:
        first, last = -p, (width - 1) * s + (kernel - 1) * d - p
        if width == 1:
            return None if d != 1 else Merged(s * stride, first, kernel, 1, 0, 1, 1, out)
        # u + p = a*s + k: k = u + p - a*s for a = width-1 ... 0
        return Merged(s * stride, first, last - first + 1, width, -(width - 1) * s, 1, s, out)
    if stride % s:
        return None
    low, high = p - (kernel - 1) * d, width - 1 + p
    first, last = -(-low // s), high // s
    if last < first or (kernel > 1 and d != 1):
        return None
    # s*u = a + p - k: k = a + p - s*u for a = 0 ... width-1
    return Merged(stride // s, first, last - first + 1, width, p - s * first, -s, 1, out)


def _match(node: fx.Node) -> Any:
    pool = read_average_pool(node)
    conv = read(pool.x) if pool is not None else None
    if pool is None or conv is None or only_user(conv.node) is not node or len(pool.kernel) != conv.d:
        return None
    merged = [merge_axis(conv, axis, pool.kernel[axis], pool.stride[axis]) for axis in range(conv.d)]
    axes = [m for m in merged if m is not None]
    if len(axes) < conv.d:
        return None
    places = math.prod(m.out for m in axes)
    flops = 2 * shape(conv.x)[0] * places * math.prod(shape(conv.weight)[:2]) * math.prod(m.entries for m in axes)
    # the saved intermediate is worth some extra arithmetic, but not much: both are dense convolutions
    return (conv, axes) if flops <= 1.25 * conv.flops else None


def _windows(at: Inserter, weight: fx.Node, dim: int, m: Merged) -> fx.Node:
    """Return the kernel with axis `dim` replaced by the means of its windows."""
    reach = (m.window - 1) * m.every + 1
    starts = (m.start, m.start + m.step * (m.entries - 1))
    low, high = min(starts), max(starts) + reach
    behind = 2 * (len(shape(weight)) - 1 - dim)
    pads = [0] * behind + [-low, high - shape(weight)[dim]]
    if any(pads):
        weight = at.call(aten.constant_pad_nd.default, weight, pads)
    if reach > 1 or abs(m.step) > 1:
        weight = at.call(aten.unfold.default, weight, dim, reach, abs(m.step))
        if m.every > 1:
            weight = at.call(aten.slice.Tensor, weight, -1, 0, reach, m.every)
        weight = at.call(aten.mean.dim, weight, [-1])
    return at.call(aten.flip.default, weight, [dim]) if m.step < 0 and m.entries > 1 else weight


def _emit(e: Edit, node: fx.Node, match: tuple[Convolution, list[Merged]]) -> None:
    conv, axes = match
    at = e.before(node)
    weight = conv.weight
    for axis, m in enumerate(axes):
        weight = _windows(at, weight, axis + 2, m)
    if conv.transposed:
        weight = swap_channels(at, weight, conv.groups)
    e.replace(node, correlate(at, conv.x, weight, conv.bias, [m.down for m in axes], [m.first for m in axes], [m.out for m in axes], conv.groups))


MERGE_CONVOLUTION_POOL = Rewrite(
    name="merge_convolution_pool",
    traits=Traits("E"),
    ops=AVERAGE_POOLS,
    match=_match,
    emit=_emit,
    doc="avg_pool(conv(x)) -> one convolution with averaged kernel windows and the product of the strides; avg_pool(conv_transpose(x)) -> an"
    " ordinary convolution when the convolution's stride divides the pool's. Identity and source: see the module's docstring.",
)


def _match_pools(node: fx.Node) -> Any:
    average = read_average_pool(node) is not None
    read_pool = read_average_pool if average else read_max_pool
    outer = read_pool(node)
    inner = read_pool(outer.x) if outer is not None else None
    if outer is None or inner is None or only_user(inner.node) is not node or outer.node.target is not inner.node.target:
        return None
    pairs = list(zip(inner.kernel, inner.stride, strict=True))
    # averages of averages weigh all elements alike only when the inner windows tile; maxima only have to leave no gaps
    return (outer, inner) if all(s == k if average else s <= k for k, s in pairs) else None


def _emit_pools(e: Edit, node: fx.Node, match: tuple[Pool, Pool]) -> None:
    outer, inner = match
    kernel = [(ko - 1) * si + ki for ko, ki, si in zip(outer.kernel, inner.kernel, inner.stride, strict=True)]
    stride = [so * si for so, si in zip(outer.stride, inner.stride, strict=True)]
    e.replace(node, e.before(node).call(node.target, inner.x, kernel, stride))


MERGE_POOLS = Rewrite(
    name="merge_pools",
    traits=Traits("E"),
    ops=(*AVERAGE_POOLS, *MAX_POOLS),
    match=_match_pools,
    emit=_emit_pools,
    doc="pool(pool(x)) -> one pool: kernel (k2 - 1) s1 + k1, stride s1 s2; averages when s1 = k1, maxima when s1 <= k1. Notes 2.5 (L2-6, 72, 78).",
)

TECHNIQUES = (MERGE_POOLS, MERGE_CONVOLUTION_POOL)
