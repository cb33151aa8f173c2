"""Operators that compute each element alone: one for each scalar function, and those that broadcast a vector."""

from __future__ import annotations

from random import Random

from warpwright.translation.pairs.definitions.expr import Graph, Reduction, Stage, acc, call, graph, index, select
from warpwright.translation.pairs.definitions.functions import BINARY, TERNARY, UNARY, Function
from warpwright.translation.pairs.definitions.operators.table import Make, Operator, Table, cut, mapped, size, source, tensor_shape

TABLE = Table()
operator = TABLE.operator


def _elementwise(function: Function) -> Make:
    def make(rng: Random) -> Graph:
        shape = tensor_shape(rng)
        domains = [function.domain] + [function.domain2 or function.domain] * (function.arity - 1)
        if function.name == "addcdiv":
            domains = [(-1e3, 1e3), (-1e3, 1e3), (0.3, 1e3)]
        inputs = tuple(source(f"x{k}", *shape, interval=cut(domain)) for k, domain in enumerate(domains))
        return mapped(function.name, "elementwise", inputs, shape, lambda *at: call(function.name, *(x[at] for x in inputs)))

    return make


for _function in (*UNARY, *BINARY, *TERNARY):
    TABLE[_function.name] = Operator(_function.name, "elementwise", _elementwise(_function))


def _broadcast(name: str, function: str, over: str) -> None:
    """Register a binary function of a matrix and a row, a column or a channel vector."""

    @operator("broadcast", name)
    def make(rng: Random) -> Graph:
        if over == "channel":
            n, c, h, w = size(rng, 1, 4), size(rng, 2, 32), size(rng, 4, 24), size(rng, 4, 24)
            x, v = source("x0", n, c, h, w), source("x1", c, interval=(0.3, 2.0))
            return mapped(name, "broadcast", (x, v), x.shape, lambda b, k, i, j: call(function, x[b, k, i, j], v[k]))
        rows, columns = size(rng, 8, 256), size(rng, 8, 256)
        x, v = source("x0", rows, columns), source("x1", columns if over == "row" else rows, interval=(0.3, 2.0))
        return mapped(name, "broadcast", (x, v), x.shape, lambda i, j: call(function, x[i, j], v[j if over == "row" else i]))


for _name, _binary, _over in (
    ("bias_add", "add", "row"), ("bias_add_channel", "add", "channel"), ("scale_rows", "multiply", "column"), ("scale_columns", "multiply", "row"),
    ("scale_channel", "multiply", "channel"), ("divide_rows", "divide", "column"), ("max_with_row", "maximum", "row"),
    ("subtract_column", "subtract", "column"),
):  # fmt: skip
    _broadcast(_name, _binary, _over)


@operator("broadcast")
def prelu(rng: Random) -> Graph:
    """Return x where positive, slope[channel] * x elsewhere."""
    x = source("x0", size(rng, 1, 4), size(rng, 2, 32), size(rng, 8, 200))
    slope = source("x1", x.shape[1], interval=(0.05, 0.5))
    return mapped("prelu", "broadcast", (x, slope), x.shape, lambda n, c, i: select(call("lt", 0.0, x[n, c, i]), x[n, c, i], slope[c] * x[n, c, i]))


@operator("broadcast")
def scale_shift(rng: Random) -> Graph:
    """Return x * scale[channel] + shift[channel]."""
    x = source("x0", size(rng, 1, 4), size(rng, 2, 32), size(rng, 4, 24), size(rng, 4, 24))
    a, b = source("x1", x.shape[1], interval=(0.5, 2.0)), source("x2", x.shape[1])
    return mapped("scale_shift", "broadcast", (x, a, b), x.shape, lambda n, c, i, j: x[n, c, i, j] * a[c] + b[c])


@operator("broadcast")
def outer_product(rng: Random) -> Graph:
    """Return x[i] * y[j]."""
    x, y = source("x0", size(rng, 16, 256)), source("x1", size(rng, 16, 256))
    return mapped("outer_product", "broadcast", (x, y), (x.size, y.size), lambda i, j: x[i] * y[j])


@operator("broadcast")
def pairwise_distance(rng: Random) -> Graph:
    """Return the squared distances between rows of two matrices."""
    n, m, d = size(rng, 8, 64), size(rng, 8, 64), size(rng, 4, 64)
    x, y = source("x0", n, d), source("x1", m, d)
    i, j, k = index("i"), index("j"), index("k")
    near = Reduction("s", (("k", d),), "sum", call("squared_difference", x[i, k], y[j, k]))
    return graph("pairwise_distance", "broadcast", (x, y), (Stage("y", (("i", n), ("j", m)), acc("s"), (near,)),))
