"""The operator table, continued: matmul, convolution, pooling, norms, attention, quantised, gather and scatter, resize, transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from warpwright.pairs.expr import Buffer, Combine, Expr, Graph, Reduction, Stage, acc, call, const, graph, index, select, within
from warpwright.pairs.operators import mapped, operator, size, source

I, J, K, N, C, H, W, R, Q, P, S = (index(name) for name in ("i", "j", "k", "n", "c", "h", "w", "r", "q", "p", "e"))


def conjunction(*conditions: Expr) -> Expr:
    """Return whether all conditions hold."""
    whole = conditions[0]
    for one in conditions[1:]:
        whole = call("and", whole, one)
    return whole


# --- matrix products -------------------------------------------------------------------------------------------------------------------


def _matmul(name: str, a_of: str, b_of: str, batch: bool = False, after: Callable[[Expr, Buffer], Expr] | None = None) -> None:
    """Register y[i, j] = after(sum over k of a * b); `a_of` is "ik" or "ki", `b_of` "kj" or "jk"."""

    @operator("matmul", name)
    def make(rng: Random) -> Graph:
        m, n, k = size(rng, 8, 96), size(rng, 8, 96), size(rng, 8, 128)
        extent, axis = {"i": m, "j": n, "k": k}, {"i": I, "j": J, "k": K}
        b = size(rng, 2, 5) if batch else 0
        lead, at = ((b,), (N,)) if batch else ((), ())
        x0 = source("x0", *lead, *(extent[d] for d in a_of))
        x1 = source("x1", *lead, *(extent[d] for d in b_of))
        bias = source("x2", n)
        product = x0[(*at, *(axis[d] for d in a_of))] * x1[(*at, *(axis[d] for d in b_of))]
        one = Reduction("s", (("k", k),), "sum", product)
        axes = ((("n", b),) if batch else ()) + (("i", m), ("j", n))
        inputs = (x0, x1, bias) if after else (x0, x1)
        return graph(name, "matmul", inputs, (Stage("y", axes, after(acc("s"), bias) if after else acc("s"), (one,)),))


_matmul("matmul", "ik", "kj")
_matmul("matmul_nt", "ik", "jk")
_matmul("matmul_tn", "ki", "kj")
_matmul("matmul_tt", "ki", "jk")
_matmul("batch_matmul", "ik", "kj", batch=True)
_matmul("batch_matmul_nt", "ik", "jk", batch=True)
_matmul("dense", "ik", "jk", after=lambda s, b: s + b[J])
_matmul("dense_relu", "ik", "jk", after=lambda s, b: call("relu", s + b[J]))
_matmul("dense_gelu", "ik", "jk", after=lambda s, b: call("gelu", s + b[J]))
_matmul("dense_tanh", "ik", "kj", after=lambda s, b: call("tanh", s + b[J]))
_matmul("dense_sigmoid", "ik", "kj", after=lambda s, b: 1.0 / (1.0 + call("exp", -1.0 * (s + b[J]))))
_matmul("matmul_scaled", "ik", "kj", after=lambda s, b: s * 0.125 + b[J] * 0.5)


@operator("matmul")
def matvec(rng: Random) -> Graph:
    """Return a matrix times a vector."""
    m, k = size(rng, 16, 400), size(rng, 16, 400)
    a, x = source("x0", m, k), source("x1", k)
    return graph("matvec", "matmul", (a, x), (Stage("y", (("i", m),), acc("s"), (Reduction("s", (("k", k),), "sum", a[I, K] * x[K]),)),))


@operator("matmul")
def vecmat(rng: Random) -> Graph:
    """Return a vector times a matrix."""
    k, n = size(rng, 16, 400), size(rng, 16, 400)
    x, a = source("x0", k), source("x1", k, n)
    return graph("vecmat", "matmul", (x, a), (Stage("y", (("j", n),), acc("s"), (Reduction("s", (("k", k),), "sum", x[K] * a[K, J]),)),))


@operator("matmul")
def gram(rng: Random) -> Graph:
    """Return x times its own transpose."""
    m, k = size(rng, 8, 80), size(rng, 8, 128)
    x = source("x0", m, k)
    return graph("gram", "matmul", (x,), (Stage("y", (("i", m), ("j", m)), acc("s"), (Reduction("s", (("k", k),), "sum", x[I, K] * x[J, K]),)),))


@operator("matmul")
def bilinear_form(rng: Random) -> Graph:
    """Return x[n, i] a[i, j] y[n, j], summed over i and j."""
    n, i, j = size(rng, 8, 64), size(rng, 8, 32), size(rng, 8, 32)
    x, a, y = source("x0", n, i), source("x1", i, j), source("x2", n, j)
    one = Reduction("s", (("i", i), ("j", j)), "sum", x[N, I] * a[I, J] * y[N, J])
    return graph("bilinear_form", "matmul", (x, a, y), (Stage("y", (("n", n),), acc("s"), (one,)),))


@operator("matmul")
def two_layers(rng: Random) -> Graph:
    """Return relu(x w) v."""
    m, k, h, n = size(rng, 8, 48), size(rng, 8, 64), size(rng, 8, 64), size(rng, 8, 48)
    x, w, v = source("x0", m, k), source("x1", k, h), source("x2", h, n)
    t = Buffer("hidden", (m, h))
    first = Stage("hidden", (("i", m), ("h", h)), call("relu", acc("s")), (Reduction("s", (("k", k),), "sum", x[I, K] * w[K, H]),))
    second = Stage("y", (("i", m), ("j", n)), acc("s"), (Reduction("s", (("k", h),), "sum", t[I, K] * v[K, J]),))
    return graph("two_layers", "matmul", (x, w, v), (first, second))


# --- convolution -----------------------------------------------------------------------------------------------------------------------


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
    return graph("conv3d", "convolution", (x, f), (Stage("y", (("c", cout), ("i", d - k + 1), ("h", h - k + 1), ("w", w - k + 1)), acc("s"), (one,)),))


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
    return graph("conv2d_transposed", "convolution", (x, f), (Stage("y", (("c", cout), ("h", 2 * h + k - 2), ("w", 2 * w + k - 2)), acc("s"), (one,)),))


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


# --- pooling ---------------------------------------------------------------------------------------------------------------------------


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
    return graph("adaptive_avg_pool", "pooling", (x,), (Stage("y", (("n", x.shape[0]), ("c", x.shape[1]), ("i", parts)), acc("s") / float(width), (one,)),))


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
