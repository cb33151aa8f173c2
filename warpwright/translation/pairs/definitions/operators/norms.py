"""Softmax and normalisation along rows, groups or channels."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from warpwright.translation.pairs.definitions.expr import Expr, Graph, Reduction, Stage, Tensor, acc, call, const, graph, select, within
from warpwright.translation.pairs.definitions.operators.table import C, I, J, K, N, Q, R, Table, mapped, size, source

TABLE = Table()
operator = TABLE.operator


def _rowwise(name: str, make_body: Callable[[Tensor, tuple[Tensor, ...], int], tuple[Expr, tuple[Reduction, ...]]], vectors: int = 0) -> None:
    """Register y[i, j] = f(x[i, j], reductions of row i, vectors[j])."""

    @operator("normalisation", name)
    def make(rng: Random) -> Graph:
        x = source("x0", size(rng, 8, 160), size(rng, 16, 400), interval=(-2.0, 2.0))
        more = tuple(source(f"x{k + 1}", x.shape[1], interval=(0.5, 1.5)) for k in range(vectors))
        body, parts = make_body(x, more, x.shape[1])
        return graph(name, "normalisation", (x, *more), (Stage("y", (("i", x.shape[0]), ("j", x.shape[1])), body, parts),))


def softmax_reductions(x: Expr, columns: int) -> tuple[Reduction, Reduction]:
    over = (("k", columns),)
    return Reduction("m", over, "max", x), Reduction("s", over, "sum", call("exp", x - acc("m")))


_rowwise("softmax", lambda x, v, n: (call("exp", x[I, J] - acc("m")) / acc("s"), softmax_reductions(x[I, K], n)))
_rowwise("softmin", lambda x, v, n: (call("exp", -1.0 * x[I, J] - acc("m")) / acc("s"), softmax_reductions(-1.0 * x[I, K], n)))
_rowwise("softmax_scaled", lambda x, v, n: (call("exp", 0.125 * x[I, J] - acc("m")) / acc("s"), softmax_reductions(0.125 * x[I, K], n)))
_rowwise("log_softmax", lambda x, v, n: (x[I, J] - acc("m") - call("log", acc("s")), softmax_reductions(x[I, K], n)))


def _moments(x: Tensor, n: int) -> tuple[Reduction, Reduction]:
    over = (("k", n),)
    return Reduction("m", over, "sum", x[I, K]), Reduction("s", over, "sum", call("square", x[I, K] - acc("m") / float(n)))


def _standard(x: Tensor, n: int) -> Expr:
    return (x[I, J] - acc("m") / float(n)) / call("sqrt", acc("s") / float(n) + 1e-5)


def _squares(x: Tensor, n: int) -> tuple[Reduction]:
    return (Reduction("s", (("k", n),), "sum", x[I, K] * x[I, K]),)


_rowwise("standardise", lambda x, v, n: (_standard(x, n), _moments(x, n)))
_rowwise("layer_norm", lambda x, v, n: (_standard(x, n) * v[0][J] + v[1][J], _moments(x, n)), 2)
_rowwise("rms_norm", lambda x, v, n: (x[I, J] / call("sqrt", acc("s") / float(n) + 1e-5) * v[0][J], _squares(x, n)), 1)
_rowwise("l2_normalise", lambda x, v, n: (x[I, J] / call("sqrt", acc("s") + 1e-6), _squares(x, n)))
_rowwise("l1_normalise", lambda x, v, n: (x[I, J] / (acc("s") + 1e-6), (Reduction("s", (("k", n),), "sum", call("abs", x[I, K])),)))
_rowwise("max_normalise", lambda x, v, n: (x[I, J] / (acc("s") + 1e-3), (Reduction("s", (("k", n),), "max", call("abs", x[I, K])),)))
_rowwise("centre", lambda x, v, n: (x[I, J] - acc("s") / float(n), (Reduction("s", (("k", n),), "sum", x[I, K]),)))
_rowwise("subtract_max", lambda x, v, n: (x[I, J] - acc("s"), (Reduction("s", (("k", n),), "max", x[I, K]),)))
_rowwise("min_max_scale", lambda x, v, n: ((x[I, J] - acc("a")) / (acc("b") - acc("a") + 1e-3),
         (Reduction("a", (("k", n),), "min", x[I, K]), Reduction("b", (("k", n),), "max", x[I, K]))))  # fmt: skip


@operator("normalisation")
def group_norm(rng: Random) -> Graph:
    """Normalise each group of channels, then scale and shift each channel."""
    n, groups, per, length = size(rng, 1, 4), rng.choice((2, 4)), size(rng, 2, 6), size(rng, 16, 120)
    x = source("x0", n, groups, per, length)
    scale, shift = source("x1", groups, per, interval=(0.5, 1.5)), source("x2", groups, per)
    count, over = float(per * length), (("q", per), ("k", length))
    m = Reduction("m", over, "sum", x[N, I, Q, K])
    s = Reduction("s", over, "sum", call("square", x[N, I, Q, K] - acc("m") / count))
    body = (x[N, I, C, J] - acc("m") / count) / call("sqrt", acc("s") / count + 1e-5) * scale[I, C] + shift[I, C]
    return graph("group_norm", "normalisation", (x, scale, shift), (Stage("y", (("n", n), ("i", groups), ("c", per), ("j", length)), body, (m, s)),))


@operator("normalisation")
def batch_norm(rng: Random) -> Graph:
    """Normalise each channel with a mean and a variance that are inputs."""
    x = source("x0", size(rng, 1, 4), size(rng, 2, 24), size(rng, 4, 20), size(rng, 4, 20))
    c = x.shape[1]
    mean, var, scale, shift = source("x1", c), source("x2", c, interval=(0.3, 2.0)), source("x3", c, interval=(0.5, 1.5)), source("x4", c)
    return mapped("batch_norm", "normalisation", (x, mean, var, scale, shift), x.shape,
                  lambda n, k, h, w: (x[n, k, h, w] - mean[k]) / call("sqrt", var[k] + 1e-5) * scale[k] + shift[k])  # fmt: skip


@operator("normalisation")
def local_response_norm(rng: Random) -> Graph:
    """Divide by a power of the energy of neighbouring channels."""
    x, half = source("x0", size(rng, 1, 3), size(rng, 6, 24), size(rng, 16, 120)), 2
    at = C + R - half
    one = Reduction("s", (("r", 2 * half + 1),), "sum", select(within(at, x.shape[1]), call("square", x[N, at, I]), 0.0))
    body = x[N, C, I] / call("power", 2.0 + 0.1 * acc("s"), const(0.75))
    return graph("local_response_norm", "normalisation", (x,), (Stage("y", (("n", x.shape[0]), ("c", x.shape[1]), ("i", x.shape[2])), body, (one,)),))
