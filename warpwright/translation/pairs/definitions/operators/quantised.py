"""Operators on int8 values."""

from __future__ import annotations

from random import Random

from warpwright.translation.pairs.definitions.expr import Graph, Reduction, Stage, Tensor, acc, call, graph
from warpwright.translation.pairs.definitions.operators.table import I, J, K, Table, mapped, size, source

TABLE = Table()
operator = TABLE.operator


def _int8(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, "int8", -128, 128, "index")


@operator("quantised")
def quantise(rng: Random) -> Graph:
    """Return round(x * 32) as int8; the scale is a power of two, so float32 and float64 round alike."""
    x = source("x0", size(rng, 8, 200), size(rng, 8, 200), interval=(-5.0, 5.0))
    return mapped("quantise", "quantised", (x,), x.shape, lambda i, j: call("clamp_int8", call("round", x[i, j] * 32.0)))


@operator("quantised")
def dequantise(rng: Random) -> Graph:
    """Return (int8 - zero point) * scale[channel]."""
    x = _int8("x0", size(rng, 8, 200), size(rng, 8, 200))
    s = source("x1", x.shape[1], interval=(0.01, 0.1))
    return mapped("dequantise", "quantised", (x, s), x.shape, lambda i, j: call("to_float", call("to_int", x[i, j]) - 3) * s[j])


@operator("quantised")
def fake_quantise(rng: Random) -> Graph:
    """Quantise and dequantise with a scale that is a power of two."""
    x = source("x0", size(rng, 8, 200), size(rng, 8, 200), interval=(-3.0, 3.0))
    return mapped("fake_quantise", "quantised", (x,), x.shape,
                  lambda i, j: call("minimum", call("maximum", call("round", x[i, j] * 64.0), -128.0), 127.0) * 0.015625)  # fmt: skip


@operator("quantised")
def matmul_int8(rng: Random) -> Graph:
    """Return the int32 product of int8 matrices."""
    m, n, k = size(rng, 8, 80), size(rng, 8, 80), size(rng, 8, 128)
    a, b = _int8("x0", m, k), _int8("x1", n, k)
    one = Reduction("s", (("k", k),), "sum", call("to_int", a[I, K]) * call("to_int", b[J, K]))
    return graph("matmul_int8", "quantised", (a, b), (Stage("y", (("i", m), ("j", n)), acc("s", "int32"), (one,)),))


@operator("quantised")
def dense_int8(rng: Random) -> Graph:
    """Return the int8 product, scaled to float and shifted."""
    m, n, k = size(rng, 8, 80), size(rng, 8, 80), size(rng, 8, 128)
    a, b, bias = _int8("x0", m, k), _int8("x1", n, k), source("x2", n)
    one = Reduction("s", (("k", k),), "sum", call("to_int", a[I, K]) * call("to_int", b[J, K]))
    body = call("to_float", acc("s", "int32")) * 0.0009765625 + bias[J]
    return graph("dense_int8", "quantised", (a, b, bias), (Stage("y", (("i", m), ("j", n)), body, (one,)),))


@operator("quantised")
def matvec_int8_weights(rng: Random) -> Graph:
    """Return float activations times int8 weights with one scale a row."""
    m, k = size(rng, 16, 200), size(rng, 16, 200)
    a, scale, x = _int8("x0", m, k), source("x1", m, interval=(0.005, 0.02)), source("x2", k)
    one = Reduction("s", (("k", k),), "sum", call("to_float", a[I, K]) * x[K])
    return graph("matvec_int8_weights", "quantised", (a, scale, x), (Stage("y", (("i", m),), acc("s") * scale[I], (one,)),))
