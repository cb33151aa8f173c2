"""Transposed convolutions as ordinary ones: by flipping the kernel, or phase by phase.

A transposed convolution gives  y[o] = sum of W[k] x[i]  over  o = i*s - p + k*d. With stride 1 that is an ordinary convolution with the flipped
kernel and padding d*(k-1) - p. With stride s and d = 1, write o + c = s*j + r with a phase r in [0, s) and a shift c: then k = r + (p - c) - s*u
and i = j + u, so all phases are one ordinary convolution with s times the channels and ceil(K/s) kernel entries, whose output is
interleaved ("depth to space"). Of the zeros between inputs none is ever multiplied. A dilated kernel gets its zeros inserted first.
Reductions over channels, statistics and max pools of whole phases are taken before the interleaving. Sources: notes 2.5 (L1-57 ... 81;
L2-58, 78, 96); shift and padding for the general case, own derivation.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, argument, aten, only_user, shape
from warpwright.domains.graph.techniques.convolutions.convolution import TRANSPOSED, Convolution, correlate, read, swap_channels
from warpwright.domains.graph.techniques.reduction import MAX_POOLS, Pool, read_max_pool
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits

# --- stride 1 ------------------------------------------------------------------------------------------------------------


def _match_unit(node: fx.Node) -> Any:
    conv = read(node)
    return conv if conv is not None and set(conv.stride) == {1} else None


def _emit_unit(e: Edit, node: fx.Node, conv: Convolution) -> None:
    at = e.before(node)
    weight = swap_channels(at, conv.weight, conv.groups)
    axes = [axis + 2 for axis in range(conv.d) if conv.kernel[axis] > 1]
    if axes:
        weight = at.call(aten.flip.default, weight, axes)
    first = [p - d * (k - 1) for p, d, k in zip(conv.padding, conv.dilation, conv.kernel, strict=True)]
    stride = [1] * conv.d
    e.replace(node, correlate(at, conv.x, weight, conv.bias, stride, first, list(conv.out), conv.groups, list(conv.dilation)))


FLIP_TRANSPOSED = Rewrite(
    name="flip_transposed",
    traits=Traits("E"),
    ops=TRANSPOSED,
    match=_match_unit,
    emit=_emit_unit,
    doc="conv_transpose(x, W), stride 1 -> conv(x, flipped W with its channel axes exchanged), padding dilation * (k - 1) - padding. Notes 2.5"
    " (L1-57, 58, 61, 64 ...).",
)

# --- phases --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Phase:
    """One axis in phases: output o = s*j + r - shift, input i = j + u for u in [first, first + entries), kernel index r + lead - s*u."""

    s: int
    shift: int
    lead: int
    first: int
    entries: int
    places: int
    """How many j there are."""


def phase_axis(conv: Convolution, axis: int, shift: int | None = None) -> Phase:
    """Return the axis in phases; without a given `shift`, with the one that costs least."""
    s, p, kernel, out = conv.stride[axis], conv.padding[axis], _reach(conv, axis), conv.out[axis]

    def shifted(c: int) -> Phase:
        first = -((kernel - 1 - p + c) // s)
        last = (s - 1 + p - c) // s
        return Phase(s, c, p - c, first, last - first + 1, (out - 1 + c) // s + 1)

    choices = [shifted(c) for c in (range(s) if shift is None else (shift,))]
    return min(choices, key=lambda phase: phase.entries * phase.places)


def _reach(conv: Convolution, axis: int) -> int:
    """Return the kernel's size with the zeros of its dilation inserted."""
    return (conv.kernel[axis] - 1) * conv.dilation[axis] + 1


def in_phases(conv: Convolution) -> bool:
    """Is this a strided transposed convolution that the phase form covers, and does not make dearer?

    The dense form multiplies s * ceil(K/s) / K times more per axis. Measured on H100, cuDNN's transposed 3D convolutions run at 6 TFLOPS (notes
    0.6), so that there it always pays; in fewer dimensions it may add a quarter, or whatever stays within 128 operations per
    output, at which memory and not arithmetic sets the pace.
    """
    if not conv.transposed or max(conv.stride) == 1 or any(math.gcd(s, d) > 1 for s, d in zip(conv.stride, conv.dilation, strict=True)):
        return False  # what stride and dilation share is taken out first, by `live_lattice`
    entries = math.prod(-(-_reach(conv, axis) // conv.stride[axis]) for axis in range(conv.d))
    waste = entries * math.prod(conv.stride) / math.prod(conv.kernel)
    dense = set(conv.dilation) == {1}
    return (conv.d == 3 and dense) or waste <= 1.25 or 2 * shape(conv.weight)[0] // conv.groups * entries <= 128


def phases(at: Inserter, conv: Convolution, axes: list[Phase], bias: fx.Node | None) -> fx.Node:
    """Insert the convolution that gives all phases: [N, groups * prod(s) * Cout/groups, *places]."""
    weight = conv.weight
    d, groups, (inputs, outputs) = conv.d, conv.groups, shape(weight)[:2]
    for axis, phase in reversed(list(enumerate(axes))):  # from the last, so that earlier axes keep their numbers
        dim = axis + 2
        weight = insert_zeros(at, weight, dim, conv.dilation[axis])
        before = phase.s * (phase.first + phase.entries - 1) - phase.lead
        after = phase.s * phase.entries - before - shape(weight)[dim]
        if before or after:
            weight = at.call(aten.constant_pad_nd.default, weight, [0, 0] * (len(shape(weight)) - 1 - dim) + [before, after])
        sizes = shape(weight)
        weight = at.call(aten.reshape.default, weight, [*sizes[:dim], phase.entries, phase.s, *sizes[dim + 1 :]])
    flipped = [2 + 2 * axis for axis, phase in enumerate(axes) if phase.entries > 1]
    if flipped:
        weight = at.call(aten.flip.default, weight, flipped)
    lead = 1 if groups > 1 else 0
    if lead:
        weight = at.call(aten.reshape.default, weight, [groups, inputs // groups, *shape(weight)[1:]])
    order = [*range(lead), *(lead + 3 + 2 * a for a in range(d)), lead + 1, lead, *(lead + 2 + 2 * a for a in range(d))]
    weight = at.call(aten.permute.default, weight, order)
    count = math.prod(phase.s for phase in axes)
    weight = at.call(aten.reshape.default, weight, [groups * count * outputs, inputs // groups, *(phase.entries for phase in axes)])
    if bias is not None and lead:
        bias = at.call(aten.repeat.default, at.call(aten.reshape.default, bias, [groups, 1, outputs]), [1, count, 1])
        bias = at.call(aten.reshape.default, bias, [-1])
    elif bias is not None:
        bias = at.call(aten.repeat.default, bias, [count])
    return correlate(at, conv.x, weight, bias, [1] * d, [phase.first for phase in axes], [phase.places for phase in axes], groups)


def by_phase(at: Inserter, conv: Convolution, axes: list[Phase], bias: fx.Node | None) -> fx.Node:
    """Insert all phases of a convolution of one group, as [N, prod(s), Cout, *places]."""
    places = [phase.places for phase in axes]
    return at.call(aten.reshape.default, phases(at, conv, axes, bias), [shape(conv.x)[0], -1, conv.channels, *places])


def insert_zeros(at: Inserter, tensor: fx.Node, dim: int, factor: int) -> fx.Node:
    """Return the tensor with factor - 1 zeros after each element along `dim`."""
    if factor == 1:
        return tensor
    sizes = shape(tensor)
    spread = at.call(aten.unsqueeze.default, tensor, dim + 1)
    spread = at.call(aten.constant_pad_nd.default, spread, [0, 0] * (len(sizes) - 1 - dim) + [0, factor - 1])
    return at.call(aten.reshape.default, spread, [*sizes[:dim], sizes[dim] * factor, *sizes[dim + 1 :]])


def interleave(at: Inserter, tensor: fx.Node, axes: list[Phase], out: tuple[int, ...], groups: int = 1) -> fx.Node:
    """Turn [N, groups * prod(s) * C/groups, *places] into [N, C, *out]."""
    d, (n, rows, *places) = len(axes), shape(tensor)
    strides = [phase.s for phase in axes]
    channels = rows // math.prod(strides)
    tensor = at.call(aten.reshape.default, tensor, [n, groups, *strides, channels // groups, *places])
    pairs = [i for a in range(d) for i in (d + 3 + a, 2 + a)]
    tensor = at.call(aten.permute.default, tensor, [0, 1, d + 2, *pairs])
    whole = [place * s for place, s in zip(places, strides, strict=True)]
    tensor = at.call(aten.reshape.default, tensor, [n, channels, *whole])
    cut = False
    for axis, phase in enumerate(axes):
        if phase.shift or whole[axis] != out[axis]:
            tensor, cut = at.call(aten.narrow.default, tensor, axis + 2, phase.shift, out[axis]), True
    return at.call(aten.contiguous.default, tensor) if cut else tensor


def _match_phases(node: fx.Node) -> Any:
    conv = read(node)
    return conv if conv is not None and in_phases(conv) else None


def _emit_phases(e: Edit, node: fx.Node, conv: Convolution) -> None:
    at = e.before(node)
    axes = [phase_axis(conv, axis) for axis in range(conv.d)]
    e.replace(node, interleave(at, phases(at, conv, axes, conv.bias), axes, conv.out, conv.groups))


TRANSPOSED_IN_PHASES = Rewrite(
    name="transposed_in_phases",
    traits=Traits("E", enabling=True),  # alone: 0.45 to 0.9 of cuDNN's speed in 7 of 9 tasks of KernelBench's level 2 on an H200
    ops=TRANSPOSED,
    match=_match_phases,
    emit=_emit_phases,
    doc="conv_transpose(x, W), stride s -> one ordinary convolution with s^d times the channels and ceil(k/s)^d kernel entries, interleaved.",
)


# --- what may be done before the interleaving ------------------------------------------------------------------------------

_OVER_CHANNELS = (aten.logsumexp.default, aten.amax.default, aten.amin.default)


def _match_channels(node: fx.Node) -> Any:
    conv = read(node.args[0])
    if conv is None or only_user(conv.node) is not node or conv.groups != 1 or not in_phases(conv):
        return None
    dim = argument(node, "dim")
    axes = [dim] if isinstance(dim, int) else list(dim)
    return conv if [a % (conv.d + 2) for a in axes] == [1] else None


def _emit_channels(e: Edit, node: fx.Node, conv: Convolution) -> None:
    at = e.before(node)
    axes = [phase_axis(conv, axis) for axis in range(conv.d)]
    reduced = at.call(node.target, by_phase(at, conv, axes, conv.bias), [2], False)
    new = interleave(at, reduced, axes, conv.out)
    e.replace(node, new if argument(node, "keepdim") else at.call(aten.squeeze.dim, new, 1))


CHANNELS_BEFORE_INTERLEAVING = Rewrite(
    name="channels_before_interleaving",
    traits=Traits("E"),
    ops=_OVER_CHANNELS,
    match=_match_channels,
    emit=_emit_channels,
    doc="logsumexp, max or min over the channels of conv_transpose(x) -> the same over the channels of its phases, then interleaved: Cout times less"
    " to move. Every output position is one phase of one place, so the channels of a position stay together.",
)


def _match_pool(node: fx.Node) -> Any:
    pool = read_max_pool(node)
    conv = read(pool.x) if pool is not None else None
    if pool is None or conv is None or only_user(conv.node) is not node or len(pool.kernel) != conv.d or conv.groups != 1:
        return None
    if not in_phases(conv):
        return None
    aligned = all(k % s == 0 and t % s == 0 for k, t, s in zip(pool.kernel, pool.stride, conv.stride, strict=True))
    return (pool, conv) if aligned else None


def _emit_pool(e: Edit, node: fx.Node, match: tuple[Pool, Convolution]) -> None:
    pool, conv = match
    at = e.before(node)
    axes = []
    for axis in range(conv.d):
        phase = phase_axis(conv, axis, shift=0)
        places = (shape(node)[axis + 2] - 1) * (pool.stride[axis] // phase.s) + pool.kernel[axis] // phase.s
        axes.append(Phase(phase.s, 0, phase.lead, phase.first, phase.entries, places))
    new = at.call(aten.amax.default, by_phase(at, conv, axes, None), [1])
    kernel = [k // phase.s for k, phase in zip(pool.kernel, axes, strict=True)]
    stride = [t // phase.s for t, phase in zip(pool.stride, axes, strict=True)]
    if max(kernel) > 1 or max(stride) > 1:
        new = at.call(node.target, new, kernel, stride)
    if conv.bias is not None:
        new = at.call(aten.add.Tensor, new, at.call(aten.reshape.default, conv.bias, [conv.channels, *[1] * conv.d]))
    e.replace(node, new)


POOL_BEFORE_INTERLEAVING = Rewrite(
    name="pool_before_interleaving",
    traits=Traits("E"),
    ops=MAX_POOLS,
    match=_match_pool,
    emit=_emit_pool,
    doc="max_pool(conv_transpose(x) + b), windows of whole phases -> max over the phases, then over places, + b. Adding a constant is monotone.",
)


def _match_statistics(node: fx.Node) -> Any:
    conv = read(node.args[0])
    if conv is None or only_user(conv.node) is not node or conv.groups != 1 or not in_phases(conv) or argument(node, "correction") != 0:
        return None
    over = {a % (conv.d + 2) for a in argument(node, "dim") or ()}
    whole = {0, *range(2, conv.d + 2)}
    axes = [phase_axis(conv, axis) for axis in range(conv.d)]
    empty = any(_living(phase, r, conv.out[axis])[1] <= 0 for axis, phase in enumerate(axes) for r in range(phase.s))
    return (conv, axes) if over == whole and not argument(node, "keepdim") and not empty else None


def _living(phase: Phase, r: int, out: int) -> tuple[int, int]:
    """Return the first place of phase `r` that is an output, and how many are."""
    first = 1 if r < phase.shift else 0
    return first, (out - 1 + phase.shift - r) // phase.s - first + 1


def _emit_statistics(e: Edit, node: fx.Node, match: tuple[Convolution, list[Phase]]) -> None:
    conv, axes = match
    at = e.before(node)
    dense = by_phase(at, conv, axes, conv.bias)
    shares, variances, means = [], [], []
    for index, remainders in enumerate(itertools.product(*(range(phase.s) for phase in axes))):
        part = at.call(aten.select.int, dense, 1, index)
        count = 1
        for axis, (phase, r) in enumerate(zip(axes, remainders, strict=True)):
            first, living = _living(phase, r, conv.out[axis])
            count *= living
            part = part if living == phase.places else at.call(aten.narrow.default, part, axis + 2, first, living)
        statistics = at.call(aten.var_mean.correction, part, [0, *range(2, conv.d + 2)], correction=0)
        shares.append(count / math.prod(conv.out))
        variances.append(at.item(statistics, 0))
        means.append(at.item(statistics, 1))
    mean = _weighted(at, shares, at.call(aten.stack.default, means))
    apart = at.call(aten.square.default, at.call(aten.sub.Tensor, at.call(aten.stack.default, means), mean))
    variance = _weighted(at, shares, at.call(aten.add.Tensor, at.call(aten.stack.default, variances), apart))
    for user in list(node.users):
        e.replace(user, variance if user.args[1] == 0 else mean)


def _weighted(at: Inserter, shares: list[float], stacked: fx.Node) -> fx.Node:
    """Insert the mean over axis 0 with the given shares, which sum to 1."""
    if len(set(shares)) == 1:
        return at.call(aten.mean.dim, stacked, [0])
    total = at.call(aten.mul.Tensor, at.call(aten.select.int, stacked, 0, 0), shares[0])
    for index, share in enumerate(shares[1:], 1):
        total = at.call(aten.add.Tensor, total, at.call(aten.select.int, stacked, 0, index), alpha=share)
    return total


STATISTICS_BEFORE_INTERLEAVING = Rewrite(
    name="statistics_before_interleaving",
    traits=Traits("E"),
    ops=(aten.var_mean.correction,),
    match=_match_statistics,
    emit=_emit_statistics,
    doc="var_mean(conv_transpose(x)) for each channel -> the same for each phase, put together by Chan's formula: var = sum of w (var_i + (mean_i -"
    " mean)^2). Nothing is interleaved, and no difference of squares is taken.",
)


TECHNIQUES = (STATISTICS_BEFORE_INTERLEAVING, CHANNELS_BEFORE_INTERLEAVING, POOL_BEFORE_INTERLEAVING, FLIP_TRANSPOSED, TRANSPOSED_IN_PHASES)
