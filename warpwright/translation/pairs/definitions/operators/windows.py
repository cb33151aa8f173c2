"""Operators over sliding windows: convolution, stencils, pooling."""

from __future__ import annotations

import math
from random import Random

from warpwright.translation.pairs.definitions.expr import Combine, Expr, Graph, Reduction, Stage, acc, call, conjunction, graph, index, select, within
from warpwright.translation.pairs.definitions.operators.table import C, H, I, K, N, P, Q, R, S, Table, W, mapped, size, source

TABLE = Table()
operator = TABLE.operator


def _conv2d(name: str, groups: str = "", dilation: int = 1, pointwise: bool = False, after: str = "") -> None:
    @operator("convolution", name)
    def make(rng: Random) -> Graph:
        g = {"": 1, "group": 2, "depthwise": 0}[groups]
        cin = 2 * size(rng, 1, 4) if g != 0 else size(rng, 2, 12)
        g = g or cin
        cout = cin if groups == "depthwise" else 2 * size(rng, 1, 6)
        kernel = 1 if pointwise else rng.choice((2, 3, 3, 5))
        stride, pad = rng.choice((1, 1, 2)), 0 if pointwise else rng.choice((0, 1))
        h = size(rng, 10, 20)
        w, n = size(rng, 10, 24), size(rng, 1, 2)
        oh = (h + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        ow = (w + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        x, f = source("x0", n, cin, h, w), source("x1", cout, cin // g, kernel, kernel)
        row, column = H * stride + R * dilation - pad, W * stride + S * dilation - pad
        channel = (C // (cout // g)) * (cin // g) + Q if g > 1 else Q
        value = x[N, channel, row, column]
        if pad:
            value = select(conjunction(within(row, h), within(column, w)), value, 0.0)
        one = Reduction("s", (("q", cin // g), ("r", kernel), ("e", kernel)), "sum", value * f[C, Q, R, S])
        body = call(after, acc("s")) if after else acc("s")
        return graph(name, "convolution", (x, f), (Stage("y", (("n", n), ("c", cout), ("h", oh), ("w", ow)), body, (one,)),))


_conv2d("conv2d")
_conv2d("conv2d_relu", after="relu")
_conv2d("conv2d_dilated", dilation=2)
_conv2d("conv2d_group", groups="group")
_conv2d("conv2d_depthwise", groups="depthwise")
_conv2d("conv2d_pointwise", pointwise=True)


@operator("convolution")
def conv1d(rng: Random) -> Graph:
    """Return a one-dimensional convolution with bias."""
    n, cin, cout, length, k = size(rng, 1, 4), size(rng, 2, 12), size(rng, 2, 16), size(rng, 32, 200), rng.choice((3, 5, 7))
    x, f, b = source("x0", n, cin, length), source("x1", cout, cin, k), source("x2", cout)
    one = Reduction("s", (("q", cin), ("k", k)), "sum", x[N, Q, I + K] * f[C, Q, K])
    return graph("conv1d", "convolution", (x, f, b), (Stage("y", (("n", n), ("c", cout), ("i", length - k + 1)), acc("s") + b[C], (one,)),))


@operator("convolution")
def conv1d_causal(rng: Random) -> Graph:
    """Return a depthwise convolution that looks back only."""
    n, c, length, k = size(rng, 1, 4), size(rng, 2, 24), size(rng, 32, 256), rng.choice((2, 3, 4))
    x, f = source("x0", n, c, length), source("x1", c, k)
    at = I + K - (k - 1)
    one = Reduction("s", (("k", k),), "sum", select(call("le", 0, at), x[N, C, at], 0.0) * f[C, K])
    return graph("conv1d_causal", "convolution", (x, f), (Stage("y", (("n", n), ("c", c), ("i", length)), acc("s"), (one,)),))


@operator("convolution")
def conv3d(rng: Random) -> Graph:
    """Return a three-dimensional convolution."""
    cin, cout, d, h, w, k = size(rng, 1, 3), size(rng, 2, 4), size(rng, 5, 8), size(rng, 6, 10), size(rng, 6, 12), rng.choice((2, 3))
    x, f = source("x0", cin, d, h, w), source("x1", cout, cin, k, k, k)
    one = Reduction("s", (("q", cin), ("p", k), ("r", k), ("e", k)), "sum", x[Q, I + P, H + R, W + S] * f[C, Q, P, R, S])
    return graph(
        "conv3d", "convolution", (x, f), (Stage("y", (("c", cout), ("i", d - k + 1), ("h", h - k + 1), ("w", w - k + 1)), acc("s"), (one,)),)
    )


@operator("convolution")
def conv2d_nhwc(rng: Random) -> Graph:
    """Return a convolution with channels last."""
    n, h, w, cin, cout, k = 1, size(rng, 8, 16), size(rng, 8, 16), size(rng, 2, 8), size(rng, 4, 24), 3
    x, f = source("x0", n, h, w, cin), source("x1", k, k, cin, cout)
    one = Reduction("s", (("r", k), ("e", k), ("q", cin)), "sum", x[N, H + R, W + S, Q] * f[R, S, Q, C])
    return graph("conv2d_nhwc", "convolution", (x, f), (Stage("y", (("n", n), ("h", h - 2), ("w", w - 2), ("c", cout)), acc("s"), (one,)),))


@operator("convolution")
def conv2d_transposed(rng: Random) -> Graph:
    """Return a transposed convolution of stride 2."""
    cin, cout, h, w, k = size(rng, 1, 6), size(rng, 1, 6), size(rng, 5, 12), size(rng, 5, 12), rng.choice((2, 3, 4))
    x, f = source("x0", cin, h, w), source("x1", cin, cout, k, k)
    row, column = H - R, W - S
    fits = conjunction(call("le", 0, row), call("le", 0, column), call("eq", row % 2, 0), call("eq", column % 2, 0))
    fits = conjunction(fits, call("lt", row // 2, h), call("lt", column // 2, w))
    one = Reduction("s", (("q", cin), ("r", k), ("e", k)), "sum", select(fits, x[Q, row // 2, column // 2] * f[Q, C, R, S], 0.0))
    return graph(
        "conv2d_transposed", "convolution", (x, f), (Stage("y", (("c", cout), ("h", 2 * h + k - 2), ("w", 2 * w + k - 2)), acc("s"), (one,)),)
    )


def _stencil(name: str, taps: tuple[tuple[int, int, float], ...]) -> None:
    @operator("stencil", name)
    def make(rng: Random) -> Graph:
        x = source("x0", size(rng, 32, 160), size(rng, 32, 160))
        h, w = x.shape

        def body(i: Expr, j: Expr) -> Expr:
            inside = conjunction(call("le", 1, i), call("lt", i, h - 1), call("le", 1, j), call("lt", j, w - 1))
            total = taps[0][2] * x[i + taps[0][0], j + taps[0][1]]
            for down, right, weight in taps[1:]:
                total = total + weight * x[i + down, j + right]
            return select(inside, total, x[i, j])

        return mapped(name, "stencil", (x,), x.shape, body)


_stencil("stencil5", ((0, 0, 0.5), (-1, 0, 0.125), (1, 0, 0.125), (0, -1, 0.125), (0, 1, 0.125)))
_stencil("laplacian", ((0, 0, -4.0), (-1, 0, 1.0), (1, 0, 1.0), (0, -1, 1.0), (0, 1, 1.0)))
_stencil("sobel", ((-1, -1, -1.0), (0, -1, -2.0), (1, -1, -1.0), (-1, 1, 1.0), (0, 1, 2.0), (1, 1, 1.0)))
_stencil("box_blur", tuple((a, b, 1 / 9) for a in (-1, 0, 1) for b in (-1, 0, 1)))


# --- pooling ------------------------------------------------------------------------------------------------------------------------


def _pool(name: str, rank: int, combine: Combine, average: bool = False, padded: bool = False, whole: bool = False, square: bool = False) -> None:
    @operator("pooling", name)
    def make(rng: Random) -> Graph:
        lead = (size(rng, 1, 4), size(rng, 2, 12))
        extents = tuple(size(rng, 6, {1: 200, 2: 32, 3: 12}[rank]) for _ in range(rank))
        window = extents if whole else tuple(rng.choice((2, 3)) for _ in range(rank))
        stride, pad = (1 if whole else rng.choice((1, 2))), (1 if padded else 0)
        x = source("x0", *lead, *extents)
        out = tuple((e + 2 * pad - k) // stride + 1 for e, k in zip(extents, window, strict=True))
        axes = (("n", lead[0]), ("c", lead[1])) + (() if whole else tuple((f"o{d}", e) for d, e in enumerate(out)))
        over = tuple((f"r{d}", k) for d, k in enumerate(window))
        at = tuple(index(f"r{d}") if whole else index(f"o{d}") * stride + index(f"r{d}") - pad for d in range(rank))
        value = x[(N, C, *at)]
        if square:
            value = value * value
        if padded:
            fits = conjunction(*(within(a, e) for a, e in zip(at, extents, strict=True)))
            value = select(fits, value, -3.0e38 if combine == "max" else 0.0)
        body = acc("s") / float(math.prod(window)) if average else acc("s")
        return graph(name, "pooling", (x,), (Stage("y", axes, call("sqrt", body) if square else body, (Reduction("s", over, combine, value),)),))


for _rank in (1, 2, 3):
    _pool(f"max_pool{_rank}d", _rank, "max")
    _pool(f"avg_pool{_rank}d", _rank, "sum", average=True)
_pool("max_pool2d_padded", 2, "max", padded=True)
_pool("avg_pool2d_padded", 2, "sum", average=True, padded=True)
_pool("global_avg_pool", 2, "sum", average=True, whole=True)
_pool("global_max_pool", 2, "max", whole=True)
_pool("min_pool2d", 2, "min")
_pool("lp_pool2d", 2, "sum", square=True)
_pool("sum_pool2d", 2, "sum")


@operator("pooling")
def adaptive_avg_pool(rng: Random) -> Graph:
    """Return means over a fixed number of equal windows."""
    parts, width = rng.choice((2, 3, 4, 7)), size(rng, 3, 12)
    x = source("x0", size(rng, 1, 4), size(rng, 2, 24), parts * width)
    one = Reduction("s", (("k", width),), "sum", x[N, C, I * width + K])
    return graph(
        "adaptive_avg_pool", "pooling", (x,), (Stage("y", (("n", x.shape[0]), ("c", x.shape[1]), ("i", parts)), acc("s") / float(width), (one,)),)
    )
