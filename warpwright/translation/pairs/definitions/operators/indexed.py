"""Gather and scatter: operators whose indices are an input."""

from __future__ import annotations

from random import Random

from warpwright.translation.pairs.definitions.expr import Graph, Reduction, Stage, Tensor, acc, call, const, graph, select
from warpwright.translation.pairs.definitions.operators.norms import softmax_reductions
from warpwright.translation.pairs.definitions.operators.table import I, J, K, Table, mapped, size, source

TABLE = Table()
operator = TABLE.operator


def indices(name: str, count: int, below: int, permutation: bool = False) -> Tensor:
    """Return an int32 input of valid indices."""
    return Tensor(name, (count,), "int32", 0, below, "permutation" if permutation else "index")


@operator("gather")
def embedding(rng: Random) -> Graph:
    """Return rows of a table."""
    table = source("x0", size(rng, 8, 300), size(rng, 8, 100))
    at = indices("x1", size(rng, 16, 300), table.shape[0])
    return mapped("embedding", "gather", (table, at), (at.size, table.shape[1]), lambda i, j: table[at[i], j])


@operator("gather")
def take_columns(rng: Random) -> Graph:
    """Return columns of a matrix."""
    x = source("x0", size(rng, 8, 200), size(rng, 8, 200))
    at = indices("x1", size(rng, 8, 200), x.shape[1])
    return mapped("take_columns", "gather", (x, at), (x.shape[0], at.size), lambda i, j: x[i, at[j]])


@operator("gather")
def gather_nd(rng: Random) -> Graph:
    """Return x[row[i], column[i], :]."""
    x = source("x0", size(rng, 4, 40), size(rng, 4, 40), size(rng, 4, 40))
    rows = indices("x1", size(rng, 32, 400), x.shape[0])
    columns = indices("x2", rows.size, x.shape[1])
    return mapped("gather_nd", "gather", (x, rows, columns), (rows.size, x.shape[2]), lambda i, j: x[rows[i], columns[i], j])


@operator("gather")
def embedding_bag(rng: Random) -> Graph:
    """Return the sum of the table's rows of each bag."""
    table, bags, per = source("x0", size(rng, 16, 300), size(rng, 8, 64)), size(rng, 8, 100), rng.choice((2, 4, 8))
    at = Tensor("x1", (bags, per), "int32", 0, table.shape[0], "index")
    one = Reduction("s", (("k", per),), "sum", table[at[I, K], J])
    return graph("embedding_bag", "gather", (table, at), (Stage("y", (("i", bags), ("j", table.shape[1])), acc("s"), (one,)),))


@operator("gather")
def one_hot(rng: Random) -> Graph:
    """Return 1 where the class is the index, scaled by a weight."""
    count, classes = size(rng, 32, 300), size(rng, 8, 100)
    at, weight = indices("x0", count, classes), source("x1", count, interval=(0.5, 2.0))
    return mapped("one_hot", "gather", (at, weight), (count, classes), lambda i, j: select(call("eq", at[i], j), weight[i], 0.0))


@operator("gather")
def label_loss(rng: Random) -> Graph:
    """Return the cross entropy of each row with its label."""
    x = source("x0", size(rng, 16, 200), size(rng, 8, 100), interval=(-2.0, 2.0))
    label = indices("x1", x.shape[0], x.shape[1])
    body = acc("m") + call("log", acc("s")) - x[I, label[I]]
    return graph("label_loss", "gather", (x, label), (Stage("y", (("i", x.shape[0]),), body, softmax_reductions(x[I, K], x.shape[1])),))


def _scatter(name: str, how: str, weighted: bool = False) -> None:
    @operator("scatter", name)
    def make(rng: Random) -> Graph:
        rows, width, count = size(rng, 16, 200), size(rng, 4, 64), size(rng, 16, 300)
        count = min(count, rows) if how == "set" else count
        base, at, updates = source("x0", rows, width), indices("x1", count, rows, how == "set"), source("x2", count, width)
        y = Tensor("y", (rows, width))
        weight = source("x3", count, interval=(0.5, 1.5))
        axes = (("i", rows), ("j", width))
        value = updates[I, J] * weight[I] if weighted else updates[I, J]
        stages = (Stage("y", axes, base[I, J]), Stage("y", (("i", count), ("j", width)), value, at=(at[I], J), scatter=how))  # type: ignore[arg-type]
        return graph(name, "scatter", (base, at, updates, weight) if weighted else (base, at, updates), stages, ("y",), (y,))


_scatter("scatter_add", "add")
_scatter("scatter_set", "set")
_scatter("index_add_weighted", "add", weighted=True)


@operator("scatter")
def segment_sum(rng: Random) -> Graph:
    """Return the sums of rows by segment."""
    rows, width, segments = size(rng, 32, 400), size(rng, 4, 48), size(rng, 4, 40)
    x, at = source("x0", rows, width), indices("x1", rows, segments)
    y = Tensor("y", (segments, width))
    stages = (Stage("y", (("i", segments), ("j", width)), const(0.0)), Stage("y", (("i", rows), ("j", width)), x[I, J], at=(at[I], J), scatter="add"))
    return graph("segment_sum", "scatter", (x, at), stages, ("y",), (y,))


@operator("scatter")
def histogram(rng: Random) -> Graph:
    """Return how often each value occurs."""
    at, bins = indices("x0", size(rng, 2048, 30000), size(rng, 16, 256)), 0
    bins = int(at.high)
    y = Tensor("y", (bins,), "int32")
    stages = (Stage("y", (("i", bins),), const(0, "int32")), Stage("y", (("i", at.size),), const(1, "int32"), at=(at[I],), scatter="add"))
    return graph("histogram", "scatter", (at,), stages, ("y",), (y,))


@operator("scatter")
def histogram_weighted(rng: Random) -> Graph:
    """Return the sum of weights of each value."""
    at = indices("x0", size(rng, 2048, 20000), size(rng, 16, 256))
    weight, bins = source("x1", at.size, interval=(0.0, 1.0)), int(at.high)
    y = Tensor("y", (bins,))
    stages = (Stage("y", (("i", bins),), const(0.0)), Stage("y", (("i", at.size),), weight[I], at=(at[I],), scatter="add"))
    return graph("histogram_weighted", "scatter", (at, weight), stages, ("y",), (y,))


@operator("scatter")
def permute_rows(rng: Random) -> Graph:
    """Write each row to the place that a permutation gives."""
    rows, width = size(rng, 16, 200), size(rng, 8, 100)
    x, at = source("x0", rows, width), indices("x1", rows, rows, True)
    y = Tensor("y", (rows, width))
    return graph("permute_rows", "scatter", (x, at), (Stage("y", (("i", rows), ("j", width)), x[I, J], at=(at[I], J), scatter="set"),), ("y",), (y,))
