"""Attention and the operators around it."""

from __future__ import annotations

import math
from random import Random

from warpwright.translation.pairs.definitions.expr import Expr, Graph, Reduction, Stage, Tensor, acc, call, graph, select
from warpwright.translation.pairs.definitions.operators.norms import softmax_reductions
from warpwright.translation.pairs.definitions.operators.table import I, J, K, N, Table, mapped, size, source

TABLE = Table()
operator = TABLE.operator


def _attention(name: str, causal: bool = False, distance: bool = False, weights_only: bool = False) -> None:
    @operator("attention", name)
    def make(rng: Random) -> Graph:
        b, t, d = size(rng, 1, 4), size(rng, 8, 48), size(rng, 8, 32)
        q, k, v = source("x0", b, t, d), source("x1", b, t, d), source("x2", b, t, d)
        scores, weights = Tensor("scores", (b, t, t)), Tensor("weights", (b, t, t))
        score = acc("s") * (1 / math.sqrt(d))
        if distance:
            score = score - 0.0625 * call("to_float", call("imax", I - J, J - I))
        if causal:
            score = select(call("le", J, I), score, -1.0e9)
        axes = (("n", b), ("i", t), ("j", t))
        first = Stage("scores", axes, score, (Reduction("s", (("k", d),), "sum", q[N, I, K] * k[N, J, K]),))
        second = Stage("weights", axes, call("exp", scores[N, I, J] - acc("m")) / acc("s"), softmax_reductions(scores[N, I, K], t))
        third = Stage("y", (("n", b), ("i", t), ("j", d)), acc("s"), (Reduction("s", (("k", t),), "sum", weights[N, I, K] * v[N, K, J]),))
        return graph(name, "attention", (q, k) if weights_only else (q, k, v), (first, second) if weights_only else (first, second, third))


_attention("attention")
_attention("attention_causal", causal=True)
_attention("attention_distance", distance=True)
_attention("attention_weights", weights_only=True)


@operator("attention")
def masked_softmax(rng: Random) -> Graph:
    """Return the softmax of the lower triangle of each row."""
    b, t = size(rng, 1, 4), size(rng, 16, 96)
    x = source("x0", b, t, t)
    kept = select(call("le", K, I), x[N, I, K], -1.0e9)
    shown = select(call("le", J, I), x[N, I, J], -1.0e9)
    body = call("exp", shown - acc("m")) / acc("s")
    return graph("masked_softmax", "attention", (x,), (Stage("y", (("n", b), ("i", t), ("j", t)), body, softmax_reductions(kept, t)),))


@operator("attention")
def rotary(rng: Random) -> Graph:
    """Rotate the halves of each head by angles that are an input."""
    t, h, half = size(rng, 8, 64), size(rng, 1, 8), size(rng, 4, 32)
    x, angle = source("x0", t, h, 2 * half), source("x1", t, half, interval=(-3.0, 3.0))

    def body(i: Expr, c: Expr, j: Expr) -> Expr:
        low = x[i, c, j] * call("cos", angle[i, j]) - x[i, c, j + half] * call("sin", angle[i, j])
        high = x[i, c, j] * call("cos", angle[i, j - half]) + x[i, c, j - half] * call("sin", angle[i, j - half])
        return select(call("lt", j, half), low, high)

    return mapped("rotary", "attention", (x, angle), x.shape, body)


@operator("attention")
def gated_linear(rng: Random) -> Graph:
    """Return silu of the first half of each row times the second."""
    x = source("x0", size(rng, 8, 200), 2 * size(rng, 8, 120))
    half = x.shape[1] // 2
    return mapped("gated_linear", "attention", (x,), (x.shape[0], half), lambda i, j: call("silu", x[i, j]) * x[i, j + half])


@operator("attention")
def linear_attention_state(rng: Random) -> Graph:
    """Return the sum over time of outer products k v."""
    b, t, d, e = size(rng, 1, 4), size(rng, 8, 64), size(rng, 8, 32), size(rng, 8, 32)
    k, v = source("x0", b, t, d), source("x1", b, t, e)
    one = Reduction("s", (("k", t),), "sum", call("relu", k[N, K, I]) * v[N, K, J])
    return graph("linear_attention_state", "attention", (k, v), (Stage("y", (("n", b), ("i", d), ("j", e)), acc("s"), (one,)),))
