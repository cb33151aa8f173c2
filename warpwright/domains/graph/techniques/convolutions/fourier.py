"""The variance of a transposed convolution by Parseval's theorem: the squares are summed over frequencies, and the output is never made.

A transposed convolution with stride 1 and no padding gives the full linear convolution, which is the circular one on its own output sizes. So with
Y_f = X_f W_f for each frequency f, summed over input channels,

    sum over places of (y - mean y)^2  =  (1 / places) * sum over f != 0 of |Y_f|^2

Leaving f = 0 out centres the sum without a subtraction. The products over channels are one small matrix product for each
frequency: K^d times fewer operations than the convolution has. Own derivation; the case in mind is a training-mode BatchNorm whose output
is averaged (L2-77), which needs variance and mean and nothing else of y.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, Inserter, argument, aten, dtype, only_user, shape
from warpwright.domains.graph.techniques.convolutions.conv_reduce import collapse
from warpwright.domains.graph.techniques.convolutions.convolution import Convolution, read
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits

_WORTH_IT = 8.0
"""How many times more operations the convolution must have than the products over channels: transforms cost about as much again as those."""
_MOST_BYTES = 1 << 31
"""Of the transformed kernel, which a fold keeps: 0.9 GB in L2-77."""


def _smooth(n: int) -> bool:
    """Has n no prime factor above 7, as fast transforms want it?"""
    for p in (2, 3, 5, 7):
        while n % p == 0:
            n //= p
    return n == 1


def _match(node: fx.Node) -> Any:
    conv = read(node.args[0])
    if conv is None or not conv.transposed or only_user(conv.node) is not node or argument(node, "correction") != 0 or argument(node, "keepdim"):
        return None
    plain = set(conv.stride) == {1} and set(conv.dilation) == {1} and conv.groups == 1 and not any(conv.padding) and not any(conv.output_padding)
    over = {a % (conv.d + 2) for a in argument(node, "dim") or ()}
    if not plain or over != {0, *range(2, conv.d + 2)} or dtype(node.args[0]) != torch.float32 or conv.d < 2:  # type: ignore[arg-type]
        return None
    frequencies = math.prod(conv.out[:-1]) * (conv.out[-1] // 2 + 1)
    products = 8 * frequencies * shape(conv.x)[0] * math.prod(shape(conv.weight)[:2])
    small = 8 * frequencies * math.prod(shape(conv.weight)[:2]) <= _MOST_BYTES
    return conv if all(_smooth(n) for n in conv.out) and small and conv.flops >= _WORTH_IT * products else None


def _spectrum(at: Inserter, tensor: fx.Node, conv: Convolution, order: list[int]) -> fx.Node:
    """Insert the transform of the spatial axes, as [frequencies, two axes of channels or batch in the given order]."""
    axes = list(range(2, conv.d + 2))
    spectrum = at.call(aten.fft_rfftn.default, tensor, list(conv.out), axes)
    spectrum = at.call(aten.permute.default, spectrum, [*axes, *order])
    sizes = shape(spectrum)
    matrices = at.call(aten.reshape.default, spectrum, [math.prod(sizes[: conv.d]), *sizes[conv.d :]])
    return at.call(aten.contiguous.default, matrices)  # else torch's product on a CPU copies one matrix after the other: 16 ms where 2 will do


def _sum(at: Inserter, energies: fx.Node) -> fx.Node:
    """Insert the sum over frequencies, in float64: they may be many, and a few of them hold nearly everything."""
    return at.call(aten.sum.dim_IntList, energies, [0], False, dtype=torch.float64)


def _without_first(at: Inserter, energies: fx.Node) -> fx.Node:
    """Return the energies of all frequencies but f = 0."""
    return at.call(aten.narrow.default, energies, 0, 1, shape(energies)[0] - 1)


def _emit(e: Edit, node: fx.Node, conv: Convolution) -> None:
    at = e.before(node)
    d, n, channels = conv.d, shape(conv.x)[0], conv.channels
    product = at.call(aten.bmm.default, _spectrum(at, conv.x, conv, [0, 1]), _spectrum(at, conv.weight, conv, [0, 1]))  # [F, N, Cout]
    parts = at.call(aten.view_as_real.default, product)
    # [F, Cout]; a norm over two axes that lie apart took three times as long on a CPU
    energies = at.call(aten.sum.dim_IntList, at.call(aten.square.default, parts), [1, 3])
    # the real transform keeps one of each pair f, -f; those of the last axis that are their own partner stand in planes 0 and size/2
    half = conv.out[-1] // 2 + 1
    planes = at.call(aten.reshape.default, energies, [shape(energies)[0] // half, half, channels])
    single = _sum(at, _without_first(at, at.call(aten.select.int, planes, 1, 0)))
    if conv.out[-1] % 2 == 0:
        single = at.call(aten.add.Tensor, single, _sum(at, at.call(aten.select.int, planes, 1, half - 1)))
    total = at.call(aten.mul.Tensor, _sum(at, _without_first(at, energies)), 2.0)
    energy = at.call(aten.sub.Tensor, total, single)  # 2 total - single >= total: nothing cancels
    places = math.prod(conv.out)
    within = at.call(aten.to.dtype, at.call(aten.mul.Tensor, energy, 1.0 / (n * places * places)), torch.float32)
    means = at.call(aten.reshape.default, collapse(at, conv, tuple(range(d)), True), [n, channels])
    between, mean = _between(at, means)
    variance = at.call(aten.add.Tensor, within, between)
    for user in list(node.users):
        e.replace(user, variance if user.args[1] == 0 else mean)


def _between(at: Inserter, means: fx.Node) -> tuple[fx.Node, fx.Node]:
    """Insert variance and mean of the rows of `means`."""
    moments = at.call(aten.var_mean.correction, means, [0], correction=0)
    return at.item(moments, 0), at.item(moments, 1)


VARIANCE_BY_PARSEVAL = Rewrite(
    "variance_by_parseval", Traits("E"), (aten.var_mean.correction,), _match, _emit,
    "var_mean(conv_transpose(x, W)) for each channel, stride 1, no padding -> sums of |FFT(x) FFT(W)|^2 and reduced inputs.",
)  # fmt: skip


TECHNIQUES = (VARIANCE_BY_PARSEVAL,)
