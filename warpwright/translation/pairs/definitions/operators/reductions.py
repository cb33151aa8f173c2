"""Reductions over rows, columns or everything, and losses."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from warpwright.translation.pairs.definitions.expr import Combine, Expr, Graph, Reduction, Stage, Tensor, acc, call, const, graph, index, select
from warpwright.translation.pairs.definitions.functions import Interval
from warpwright.translation.pairs.definitions.operators.table import Body, Table, identity, size, source

TABLE = Table()
operator = TABLE.operator


def _reduction(
    name: str, combine: Combine, before: Body = identity, after: Callable[[Expr, int], Expr] = lambda s, n: s, interval: Interval = (-1, 1)
) -> None:
    """Register a reduction over the last axis, the first axis, and everything."""

    def register(name: str, over: str) -> None:
        @operator("reduction", name)
        def make(rng: Random) -> Graph:
            if over == "all":
                x = source("x0", size(rng, 2048, 60000), interval=interval)
                i = index("i")
                one = Reduction("s", (("i", x.size),), combine, before(x[i]))
                return graph(name, "reduction", (x,), (Stage("y", (("o", 1),), after(acc(one.name, one.dtype), x.size), (one,)),))
            rows, columns = size(rng, 8, 300), size(rng, 16, 500)
            rows, columns = (rows, columns) if combine != "prod" else (rows, min(columns, 24))
            x = source("x0", *((rows, columns) if over == "last" else (columns, rows)), interval=interval)
            i, k = index("i"), index("k")
            one = Reduction("s", (("k", columns),), combine, before(x[i, k] if over == "last" else x[k, i]))
            return graph(name, "reduction", (x,), (Stage("y", (("i", rows),), after(acc(one.name, one.dtype), columns), (one,)),))

    register(name, "last")
    register(f"{name}_columns", "first")
    if combine in ("sum", "max", "min"):
        register(f"{name}_all", "all")


_reduction("sum", "sum")
_reduction("mean", "sum", after=lambda s, n: s / float(n))
_reduction("max", "max")
_reduction("min", "min")
_reduction("prod", "prod", interval=(0.6, 1.5))
_reduction("l1_norm", "sum", before=lambda x: call("abs", x))
_reduction("sum_of_squares", "sum", before=lambda x: x * x)
_reduction("l2_norm", "sum", before=lambda x: x * x, after=lambda s, n: call("sqrt", s))
_reduction("max_abs", "max", before=lambda x: call("abs", x))
_reduction("sum_exp", "sum", before=lambda x: call("exp", x))
_reduction("count_positive", "sum", before=lambda x: select(call("lt", 0.0, x), const(1.0), 0.0))
_reduction("argmax", "argmax")
_reduction("argmin", "argmin")


def _rows(rng: Random) -> tuple[Tensor, Expr, Expr, Expr, tuple[tuple[str, int], ...]]:
    x = source("x0", size(rng, 8, 200), size(rng, 16, 400), interval=(-2.0, 2.0))
    return x, index("i"), index("j"), index("k"), (("k", x.shape[1]),)


@operator("reduction")
def logsumexp(rng: Random) -> Graph:
    """Return max + log(sum(exp(x - max))) of each row."""
    x, i, _, k, over = _rows(rng)
    m = Reduction("m", over, "max", x[i, k])
    s = Reduction("s", over, "sum", call("exp", x[i, k] - acc("m")))
    return graph("logsumexp", "reduction", (x,), (Stage("y", (("i", x.shape[0]),), acc("m") + call("log", acc("s")), (m, s)),))


def _variance(name: str, last: Body) -> None:
    @operator("reduction", name)
    def make(rng: Random) -> Graph:
        x, i, _, k, over = _rows(rng)
        count = float(x.shape[1])
        m = Reduction("m", over, "sum", x[i, k])
        s = Reduction("s", over, "sum", call("square", x[i, k] - acc("m") / count))
        return graph(name, "reduction", (x,), (Stage("y", (("i", x.shape[0]),), last(acc("s") / count), (m, s)),))


_variance("variance", identity)
_variance("std", lambda v: call("sqrt", v))
_variance("rstd", lambda v: 1.0 / call("sqrt", v + 1e-5))


def _loss(name: str, body: Callable[[Expr, Expr], Expr], second: Interval = (-1, 1), first: Interval = (-1, 1)) -> None:
    @operator("loss", name)
    def make(rng: Random) -> Graph:
        rows, columns = size(rng, 8, 128), size(rng, 16, 256)
        x, t = source("x0", rows, columns, interval=first), source("x1", rows, columns, interval=second)
        i, k = index("i"), index("k")
        if rng.random() < 0.5:
            one = Reduction("s", (("i", rows), ("k", columns)), "sum", body(x[i, k], t[i, k]))
            return graph(name, "loss", (x, t), (Stage("y", (("o", 1),), acc("s") / float(rows * columns), (one,)),))
        one = Reduction("s", (("k", columns),), "sum", body(x[i, k], t[i, k]))
        return graph(name, "loss", (x, t), (Stage("y", (("i", rows),), acc("s") / float(columns), (one,)),))


_loss("mse_loss", lambda x, t: call("squared_difference", x, t))
_loss("l1_loss", lambda x, t: call("abs_difference", x, t))
_loss("huber_loss", lambda x, t: call("huber", x, t), (-3, 3))
_loss("hinge_loss", lambda x, t: call("maximum", 1.0 - x * t, 0.0), (-2, 2))
_loss("kl_divergence", lambda x, t: t * (call("log", t) - x), (0.05, 1.0))
_loss("binary_cross_entropy", lambda x, t: -1.0 * (t * call("log", x) + (1.0 - t) * call("log", 1.0 - x)), (0.05, 0.95), (0.05, 0.95))
_loss("log_cosh_loss", lambda x, t: call("log", call("cosh", x - t)), (-2, 2))
_loss("dot_rows", lambda x, t: x * t)


@operator("loss")
def cosine_similarity(rng: Random) -> Graph:
    """Return x.y / (|x| |y|) of each row."""
    rows, columns = size(rng, 8, 128), size(rng, 16, 256)
    x, y = source("x0", rows, columns), source("x1", rows, columns)
    i, k, over = index("i"), index("k"), (("k", columns),)
    parts = (
        Reduction("a", over, "sum", x[i, k] * y[i, k]),
        Reduction("b", over, "sum", x[i, k] * x[i, k]),
        Reduction("c", over, "sum", y[i, k] * y[i, k]),
    )
    return graph("cosine_similarity", "loss", (x, y), (Stage("y", (("i", rows),), acc("a") / call("sqrt", acc("b") * acc("c") + 1e-8), parts),))
