"""Resizing, Fourier and cosine transforms, polynomials."""

from __future__ import annotations

import math
from random import Random

from warpwright.translation.pairs.definitions.expr import Graph, Reduction, Stage, acc, call, const, graph, select
from warpwright.translation.pairs.definitions.operators.table import I, J, K, Table, mapped, size, source

TABLE = Table()
operator = TABLE.operator


@operator("resize")
def resize_nearest(rng: Random) -> Graph:
    """Return each pixel repeated s x s times."""
    x, s = source("x0", size(rng, 1, 8), size(rng, 6, 30), size(rng, 6, 30)), rng.choice((2, 3))
    c, h, w = x.shape
    return mapped("resize_nearest", "resize", (x,), (c, h * s, w * s), lambda k, i, j: x[k, i // s, j // s])


@operator("resize")
def upsample_linear(rng: Random) -> Graph:
    """Return the signal at twice the rate, the points between by the mean of their neighbours."""
    x = source("x0", size(rng, 2, 32), size(rng, 16, 250))
    n = x.shape[1]
    after = call("imin", J // 2 + 1, n - 1)
    return graph("upsample_linear", "resize", (x,), (Stage("y", (("i", x.shape[0]), ("j", 2 * n)),
                 select(call("eq", J % 2, 0), x[I, J // 2], 0.5 * (x[I, J // 2] + x[I, after]))),))  # fmt: skip


@operator("resize")
def interpolate_at(rng: Random) -> Graph:
    """Return the linear interpolation of a signal at positions that are an input."""
    x, n = source("x0", size(rng, 64, 2000)), size(rng, 512, 8000)
    at = source("x1", n, interval=(0.0, float(x.size - 1) - 0.01))
    low = call("to_int", at[I])
    part = at[I] - call("to_float", low)
    return graph("interpolate_at", "resize", (x, at), (Stage("y", (("i", n),), (1.0 - part) * x[low] + part * x[low + 1]),))


def _transform(name: str, function: str, half: bool = False) -> None:
    @operator("transform", name)
    def make(rng: Random) -> Graph:
        x = source("x0", size(rng, 4, 40), size(rng, 8, 64))
        n = x.shape[1]
        phase = call("to_float", ((2 * K + 1) * J) % (4 * n) if half else (K * J) % n) * (math.pi / n * (0.5 if half else 2.0))
        one = Reduction("s", (("k", n),), "sum", x[I, K] * call(function, phase))
        return graph(name, "transform", (x,), (Stage("y", (("i", x.shape[0]), ("j", n)), acc("s"), (one,)),))


_transform("dft_real", "cos")
_transform("dft_imaginary", "sin")
_transform("dct", "cos", half=True)


@operator("transform")
def autocorrelation(rng: Random) -> Graph:
    """Return the sum of x[k] x[k + lag] of each row."""
    x, lags = source("x0", size(rng, 4, 40), size(rng, 64, 200)), rng.choice((8, 16, 20))
    one = Reduction("s", (("k", x.shape[1] - lags),), "sum", x[I, K] * x[I, K + J])
    return graph("autocorrelation", "transform", (x,), (Stage("y", (("i", x.shape[0]), ("j", lags)), acc("s"), (one,)),))


@operator("transform")
def polynomial(rng: Random) -> Graph:
    """Return a polynomial by Horner's rule, coefficients the same for all."""
    x, c = source("x0", size(rng, 2048, 40000)), source("x1", 5)
    total = c[const(4, "int32")]
    for power in (3, 2, 1, 0):
        total = total * x[I] + c[const(power, "int32")]
    return graph("polynomial", "transform", (x, c), (Stage("y", (("i", x.size),), total),))
