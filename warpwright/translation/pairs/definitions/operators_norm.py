"""The operator table, continued: norms, attention, quantised, gather and scatter, resize, transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from warpwright.translation.pairs.definitions.expr import Buffer, Expr, Graph, Reduction, Stage, acc, call, const, graph, index, select, within
from warpwright.translation.pairs.definitions.operators import mapped, operator, size, source

I, J, K, N, C, H, W, R, Q, P, S = (index(name) for name in ("i", "j", "k", "n", "c", "h", "w", "r", "q", "p", "e"))  # noqa: E741


def conjunction(*conditions: Expr) -> Expr:
    """Return whether all conditions hold."""
    whole = conditions[0]
    for one in conditions[1:]:
        whole = call("and", whole, one)
    return whole


# --- norms and softmax -----------------------------------------------------------------------------------------------------------------


def _rowwise(name: str, make_body: Callable[[Buffer, tuple[Buffer, ...], int], tuple[Expr, tuple[Reduction, ...]]], vectors: int = 0) -> None:
    """Register y[i, j] = f(x[i, j], reductions of row i, vectors[j])."""

    @operator("normalisation", name)
    def make(rng: Random) -> Graph:
        x = source("x0", size(rng, 8, 160), size(rng, 16, 400), interval=(-2.0, 2.0))
        more = tuple(source(f"x{k + 1}", x.shape[1], interval=(0.5, 1.5)) for k in range(vectors))
        body, parts = make_body(x, more, x.shape[1])
        return graph(name, "normalisation", (x, *more), (Stage("y", (("i", x.shape[0]), ("j", x.shape[1])), body, parts),))


def _softmax_parts(x: Expr, columns: int) -> tuple[Reduction, Reduction]:
    over = (("k", columns),)
    return Reduction("m", over, "max", x), Reduction("s", over, "sum", call("exp", x - acc("m")))


_rowwise("softmax", lambda x, v, n: (call("exp", x[I, J] - acc("m")) / acc("s"), _softmax_parts(x[I, K], n)))
_rowwise("softmin", lambda x, v, n: (call("exp", -1.0 * x[I, J] - acc("m")) / acc("s"), _softmax_parts(-1.0 * x[I, K], n)))
_rowwise("softmax_scaled", lambda x, v, n: (call("exp", 0.125 * x[I, J] - acc("m")) / acc("s"), _softmax_parts(0.125 * x[I, K], n)))
_rowwise("log_softmax", lambda x, v, n: (x[I, J] - acc("m") - call("log", acc("s")), _softmax_parts(x[I, K], n)))


def _moments(x: Buffer, n: int) -> tuple[Reduction, Reduction]:
    over = (("k", n),)
    return Reduction("m", over, "sum", x[I, K]), Reduction("s", over, "sum", call("square", x[I, K] - acc("m") / float(n)))


def _standard(x: Buffer, n: int) -> Expr:
    return (x[I, J] - acc("m") / float(n)) / call("sqrt", acc("s") / float(n) + 1e-5)


def _squares(x: Buffer, n: int) -> tuple[Reduction]:
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
    """Normalise with given mean and variance of each channel."""
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


# --- attention -------------------------------------------------------------------------------------------------------------------------


def _attention(name: str, causal: bool = False, distance: bool = False, weights_only: bool = False) -> None:
    @operator("attention", name)
    def make(rng: Random) -> Graph:
        b, t, d = size(rng, 1, 4), size(rng, 8, 48), size(rng, 8, 32)
        q, k, v = source("x0", b, t, d), source("x1", b, t, d), source("x2", b, t, d)
        scores, weights = Buffer("scores", (b, t, t)), Buffer("weights", (b, t, t))
        score = acc("s") * (1 / math.sqrt(d))
        if distance:
            score = score - 0.0625 * call("to_float", call("imax", I - J, J - I))
        if causal:
            score = select(call("le", J, I), score, -1.0e9)
        axes = (("n", b), ("i", t), ("j", t))
        first = Stage("scores", axes, score, (Reduction("s", (("k", d),), "sum", q[N, I, K] * k[N, J, K]),))
        second = Stage("weights", axes, call("exp", scores[N, I, J] - acc("m")) / acc("s"), _softmax_parts(scores[N, I, K], t))
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
    return graph("masked_softmax", "attention", (x,), (Stage("y", (("n", b), ("i", t), ("j", t)), body, _softmax_parts(kept, t)),))


@operator("attention")
def rotary(rng: Random) -> Graph:
    """Rotate halves of each head by given angles."""
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


# --- quantised -------------------------------------------------------------------------------------------------------------------------


def _int8(name: str, *shape: int) -> Buffer:
    return Buffer(name, shape, "int8", -128, 128, "index")


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


# --- gather and scatter ----------------------------------------------------------------------------------------------------------------


def indices(name: str, count: int, below: int, permutation: bool = False) -> Buffer:
    """Return an int32 input of valid indices."""
    return Buffer(name, (count,), "int32", 0, below, "permutation" if permutation else "index")


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
    at = Buffer("x1", (bags, per), "int32", 0, table.shape[0], "index")
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
    return graph("label_loss", "gather", (x, label), (Stage("y", (("i", x.shape[0]),), body, _softmax_parts(x[I, K], x.shape[1])),))


def _scatter(name: str, how: str, weighted: bool = False) -> None:
    @operator("scatter", name)
    def make(rng: Random) -> Graph:
        rows, width, count = size(rng, 16, 200), size(rng, 4, 64), size(rng, 16, 300)
        count = min(count, rows) if how == "set" else count
        base, at, updates = source("x0", rows, width), indices("x1", count, rows, how == "set"), source("x2", count, width)
        y = Buffer("y", (rows, width))
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
    y = Buffer("y", (segments, width))
    stages = (Stage("y", (("i", segments), ("j", width)), const(0.0)), Stage("y", (("i", rows), ("j", width)), x[I, J], at=(at[I], J), scatter="add"))
    return graph("segment_sum", "scatter", (x, at), stages, ("y",), (y,))


@operator("scatter")
def histogram(rng: Random) -> Graph:
    """Return how often each value occurs."""
    at, bins = indices("x0", size(rng, 2048, 30000), size(rng, 16, 256)), 0
    bins = int(at.high)
    y = Buffer("y", (bins,), "int32")
    stages = (Stage("y", (("i", bins),), const(0, "int32")), Stage("y", (("i", at.size),), const(1, "int32"), at=(at[I],), scatter="add"))
    return graph("histogram", "scatter", (at,), stages, ("y",), (y,))


@operator("scatter")
def histogram_weighted(rng: Random) -> Graph:
    """Return the sum of weights of each value."""
    at = indices("x0", size(rng, 2048, 20000), size(rng, 16, 256))
    weight, bins = source("x1", at.size, interval=(0.0, 1.0)), int(at.high)
    y = Buffer("y", (bins,))
    stages = (Stage("y", (("i", bins),), const(0.0)), Stage("y", (("i", at.size),), weight[I], at=(at[I],), scatter="add"))
    return graph("histogram_weighted", "scatter", (at, weight), stages, ("y",), (y,))


@operator("scatter")
def permute_rows(rng: Random) -> Graph:
    """Write each row to the place that a permutation gives."""
    rows, width = size(rng, 16, 200), size(rng, 8, 100)
    x, at = source("x0", rows, width), indices("x1", rows, rows, True)
    y = Buffer("y", (rows, width))
    return graph("permute_rows", "scatter", (x, at), (Stage("y", (("i", rows), ("j", width)), x[I, J], at=(at[I], J), scatter="set"),), ("y",), (y,))


# --- resize and transforms -------------------------------------------------------------------------------------------------------------


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
    """Return the linear interpolation of a signal at given places."""
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
