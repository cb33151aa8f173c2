"""The operator table: name -> a function that draws shapes and returns a graph. Here: elementwise, reductions, losses, layout, scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from warpwright.translation.pairs.definitions.expr import (
    Buffer,
    Combine,
    Expr,
    Graph,
    Reduction,
    Stage,
    acc,
    call,
    const,
    graph,
    index,
    select,
    within,
)
from warpwright.translation.pairs.definitions.functions import BINARY, TERNARY, UNARY, Function, Interval

Make = Callable[[Random], Graph]


@dataclass(frozen=True)
class Operator:
    """One row of the table."""

    name: str
    family: str
    make: Make


OPERATORS: dict[str, Operator] = {}


def operator(family: str, name: str = "") -> Callable[[Make], Make]:
    """Register the decorated function under its own name."""

    def register(make: Make) -> Make:
        called = name or make.__name__.rstrip("_")
        OPERATORS[called] = Operator(called, family, make)
        return make

    return register


# --- sizes and inputs ------------------------------------------------------------------------------------------------------------------


def size(rng: Random, low: int, high: int) -> int:
    """Draw an extent: half of the time a multiple of a power of two, else any."""
    value = int(math.exp(rng.uniform(math.log(low), math.log(high + 1))))
    if rng.random() < 0.5:
        step = 2 ** max(0, value.bit_length() - 3)
        value = max(low, value // step * step)
    return min(high, max(low, value))


def tensor_shape(rng: Random, rank: int = 0, most: int = 65536) -> tuple[int, ...]:
    """Draw a shape of at most `most` elements and at least 512."""
    rank = rank or rng.choice((1, 2, 2, 3, 3, 4))
    total = size(rng, 2048, most)
    shape: list[int] = []
    for left in range(rank, 1, -1):
        shape.append(size(rng, 2, max(2, min(128, int(total ** (1 / left)) * 2))))
        total = max(2, total // shape[-1])
    shape.append(max(2, total))
    return tuple(shape)


def cut(interval: Interval, wide: float = 4.0) -> Interval:
    """Return the part of a domain that inputs are drawn from: at most `wide` to both sides of 0, or of its lower end."""
    low, high = interval
    if low > 0:
        return low, min(high, max(2 * low, wide))
    return max(low, -wide), min(high, wide)


def source(name: str, *shape: int, interval: Interval = (-1.0, 1.0)) -> Buffer:
    """Return a float32 input."""
    return Buffer(name, shape, "float32", *interval)


def positions(shape: tuple[int, ...], prefix: str = "i") -> tuple[tuple[tuple[str, int], ...], tuple[Expr, ...]]:
    """Return axes over a shape and their index expressions."""
    axes = tuple((f"{prefix}{d}", extent) for d, extent in enumerate(shape))
    return axes, tuple(index(name) for name, _ in axes)


def mapped(name: str, family: str, inputs: tuple[Buffer, ...], shape: tuple[int, ...], body: Callable[..., Expr]) -> Graph:
    """Return a graph of one stage: out[i0, i1, ...] = body(i0, i1, ...)."""
    axes, at = positions(shape)
    return graph(name, family, inputs, (Stage("y", axes, body(*at)),))


# --- elementwise -----------------------------------------------------------------------------------------------------------------------


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
    OPERATORS[_function.name] = Operator(_function.name, "elementwise", _elementwise(_function))


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


for _name, _called, _over in (
    ("bias_add", "add", "row"), ("bias_add_channel", "add", "channel"), ("scale_rows", "multiply", "column"), ("scale_columns", "multiply", "row"),
    ("scale_channel", "multiply", "channel"), ("divide_rows", "divide", "column"), ("max_with_row", "maximum", "row"),
    ("subtract_column", "subtract", "column"),
):  # fmt: skip
    _broadcast(_name, _called, _over)


@operator("broadcast")
def prelu(rng: Random) -> Graph:
    """Return x where positive, slope[channel] * x elsewhere."""
    x = source("x0", size(rng, 1, 4), size(rng, 2, 32), size(rng, 8, 200))
    slope = source("x1", x.shape[1], interval=(0.05, 0.5))
    return mapped(
        "prelu", "broadcast", (x, slope), x.shape, lambda n, c, i: select(call("lt", 0.0, _f(x[n, c, i])), x[n, c, i], slope[c] * x[n, c, i])
    )


def _f(value: Expr) -> Expr:
    return value


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


# --- reductions ------------------------------------------------------------------------------------------------------------------------

Body = Callable[[Expr], Expr]


def _same(x: Expr) -> Expr:
    return x


def _reduction(
    name: str, combine: Combine, before: Body = _same, after: Callable[[Expr, int], Expr] = lambda s, n: s, interval: Interval = (-1, 1)
) -> None:
    """Register a reduction over the last axis, the first axis, and everything."""

    def register(called: str, over: str) -> None:
        @operator("reduction", called)
        def make(rng: Random) -> Graph:
            if over == "all":
                x = source("x0", size(rng, 2048, 60000), interval=interval)
                i = index("i")
                one = Reduction("s", (("i", x.size),), combine, before(x[i]))
                return graph(called, "reduction", (x,), (Stage("y", (("o", 1),), after(_typed(one), x.size), (one,)),))
            rows, columns = size(rng, 8, 300), size(rng, 16, 500)
            rows, columns = (rows, columns) if combine != "prod" else (rows, min(columns, 24))
            x = source("x0", *((rows, columns) if over == "last" else (columns, rows)), interval=interval)
            i, k = index("i"), index("k")
            one = Reduction("s", (("k", columns),), combine, before(x[i, k] if over == "last" else x[k, i]))
            return graph(called, "reduction", (x,), (Stage("y", (("i", rows),), after(_typed(one), columns), (one,)),))

    register(name, "last")
    register(f"{name}_columns", "first")
    if combine in ("sum", "max", "min"):
        register(f"{name}_all", "all")


def _typed(one: Reduction) -> Expr:
    return acc(one.name, one.dtype)


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


def _rows(rng: Random) -> tuple[Buffer, Expr, Expr, Expr, tuple[tuple[str, int], ...]]:
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


_variance("variance", _same)
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


# --- layout ----------------------------------------------------------------------------------------------------------------------------


def _layout(name: str, rank: int, draw: Callable[[Random, tuple[int, ...]], tuple[tuple[int, ...], Callable[..., tuple[Expr, ...]]]]) -> None:
    """Register y[i] = x[where(i)]."""

    @operator("layout", name)
    def make(rng: Random) -> Graph:
        x = source("x0", *tensor_shape(rng, rank, 32768))
        shape, where = draw(rng, x.shape)
        return mapped(name, "layout", (x,), shape, lambda *at: x[where(*at)])


_layout("transpose", 2, lambda rng, s: ((s[1], s[0]), lambda i, j: (j, i)))
_layout("permute_021", 3, lambda rng, s: ((s[0], s[2], s[1]), lambda n, i, j: (n, j, i)))
_layout("permute_201", 3, lambda rng, s: ((s[2], s[0], s[1]), lambda i, j, k: (j, k, i)))
_layout("permute_102", 3, lambda rng, s: ((s[1], s[0], s[2]), lambda i, j, k: (j, i, k)))
_layout("nchw_to_nhwc", 4, lambda rng, s: ((s[0], s[2], s[3], s[1]), lambda n, h, w, c: (n, c, h, w)))
_layout("nhwc_to_nchw", 4, lambda rng, s: ((s[0], s[3], s[1], s[2]), lambda n, c, h, w: (n, h, w, c)))
_layout("split_heads", 3, lambda rng, s: ((s[0], s[2], s[1]), lambda b, h, t: (b, t, h)))
_layout("flip", 2, lambda rng, s: (s, lambda i, j: (i, s[1] - 1 - j)))
_layout("flip_rows", 2, lambda rng, s: (s, lambda i, j: (s[0] - 1 - i, j)))
_layout("roll", 2, lambda rng, s: (s, lambda i, j: (i, (j + max(1, s[1] // 3)) % s[1])))
_layout("strided_slice", 2, lambda rng, s: ((max(1, s[0] // 2), max(1, s[1] // 2)), lambda i, j: (i * 2, j * 2)))
_layout("slice_columns", 2, lambda rng, s: ((s[0], max(1, s[1] // 2)), lambda i, j: (i, j + s[1] // 4)))
_layout("tile", 2, lambda rng, s: ((s[0], s[1] * 2), lambda i, j: (i, j % s[1])))
_layout("repeat_interleave", 2, lambda rng, s: ((s[0], s[1] * 2), lambda i, j: (i, j // 2)))
_layout("broadcast_to", 2, lambda rng, s: ((3, s[0], s[1]), lambda n, i, j: (i, j)))
_layout("reflect_pad", 2, lambda rng, s: ((s[0], s[1] + 2), lambda i, j: (i, call("imin", call("imax", j - 1, 1 - j), 2 * s[1] - 1 - j))))
_layout("edge_pad", 2, lambda rng, s: ((s[0], s[1] + 4), lambda i, j: (i, call("imin", call("imax", j - 2, 0), s[1] - 1))))
_layout("diagonal_of_batch", 3, lambda rng, s: ((s[0], min(s[1], s[2])), lambda n, i: (n, i, i)))


def _blocks(name: str, make: Callable[[Random], tuple[Buffer, tuple[int, ...], Callable[..., Expr]]]) -> None:
    @operator("layout", name)
    def made(rng: Random) -> Graph:
        x, shape, body = make(rng)
        return mapped(name, "layout", (x,), shape, body)


def _space_to_depth(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    n, c, h, w, b = size(rng, 1, 4), size(rng, 1, 8), size(rng, 4, 16), size(rng, 4, 16), 2
    x = source("x0", n, c, h * b, w * b)
    return x, (n, c * b * b, h, w), lambda i, k, p, q: x[i, k % c, p * b + (k // c) // b, q * b + (k // c) % b]


def _depth_to_space(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    n, c, h, w, b = size(rng, 1, 4), size(rng, 1, 8), size(rng, 4, 16), size(rng, 4, 16), 2
    x = source("x0", n, c * b * b, h, w)
    return x, (n, c, h * b, w * b), lambda i, k, p, q: x[i, ((p % b) * b + q % b) * c + k, p // b, q // b]


def _pixel_shuffle(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    n, c, h, w, b = size(rng, 1, 4), size(rng, 1, 8), size(rng, 4, 16), size(rng, 4, 16), 2
    x = source("x0", n, c * b * b, h, w)
    return x, (n, c, h * b, w * b), lambda i, k, p, q: x[i, k * (b * b) + (p % b) * b + q % b, p // b, q // b]


def _channel_shuffle(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    groups, per, length = rng.choice((2, 3, 4)), size(rng, 2, 16), size(rng, 16, 256)
    x = source("x0", size(rng, 1, 4), groups * per, length)
    return x, x.shape, lambda n, c, i: x[n, (c % groups) * per + c // groups, i]


def _zero_pad(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    x, p = source("x0", size(rng, 1, 6), size(rng, 8, 64), size(rng, 8, 64)), rng.choice((1, 2, 3))
    _, h, w = x.shape
    return x, (x.shape[0], h + 2 * p, w + 2 * p), lambda n, i, j: select(call("and", within(i - p, h), within(j - p, w)), x[n, i - p, j - p], 0.0)


def _triangle(upper: bool) -> Callable[[Random], tuple[Buffer, tuple[int, ...], Callable[..., Expr]]]:
    def make(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
        x = source("x0", size(rng, 1, 4), size(rng, 16, 96), size(rng, 16, 96))
        return x, x.shape, lambda n, i, j: select(call("le", i, j) if upper else call("le", j, i), x[n, i, j], 0.0)

    return make


def _dilate(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    x, s = source("x0", size(rng, 8, 64), size(rng, 8, 64)), rng.choice((2, 3))
    h, w = x.shape
    shape = ((h - 1) * s + 1, (w - 1) * s + 1)
    return x, shape, lambda i, j: select(call("and", call("eq", i % s, 0), call("eq", j % s, 0)), x[i // s, j // s], 0.0)


def _pack_channels(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    block = rng.choice((4, 8, 16))
    x = source("x0", size(rng, 1, 4), block * size(rng, 1, 4), size(rng, 4, 16), size(rng, 4, 16))
    n, c, h, w = x.shape
    return x, (n, c // block, h, w, block), lambda b, k, i, j, v: x[b, k * block + v, i, j]


def _unpack_channels(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    block = rng.choice((4, 8, 16))
    x = source("x0", size(rng, 1, 4), size(rng, 1, 4), size(rng, 4, 16), size(rng, 4, 16), block)
    n, c, h, w, _ = x.shape
    return x, (n, c * block, h, w), lambda b, k, i, j: x[b, k // block, i, j, k % block]


def _diagonal_matrix(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    x = source("x0", size(rng, 32, 200))
    return x, (x.size, x.size), lambda i, j: select(call("eq", i, j), x[i], 0.0)


def _unfold(rng: Random) -> tuple[Buffer, tuple[int, ...], Callable[..., Expr]]:
    window, step = rng.choice((3, 4, 5)), rng.choice((1, 2))
    x = source("x0", size(rng, 2, 16), size(rng, 32, 256))
    return x, (x.shape[0], (x.shape[1] - window) // step + 1, window), lambda c, i, k: x[c, i * step + k]


for _name, _made in (
    ("space_to_depth", _space_to_depth), ("depth_to_space", _depth_to_space), ("pixel_shuffle", _pixel_shuffle),
    ("channel_shuffle", _channel_shuffle),
    ("zero_pad", _zero_pad), ("triu", _triangle(True)), ("tril", _triangle(False)), ("dilate", _dilate), ("pack_channels", _pack_channels),
    ("unpack_channels", _unpack_channels), ("diagonal_matrix", _diagonal_matrix), ("unfold", _unfold),
):  # fmt: skip
    _blocks(_name, _made)


@operator("layout")
def concatenate(rng: Random) -> Graph:
    """Return two matrices side by side."""
    rows = size(rng, 8, 128)
    x, y = source("x0", rows, size(rng, 8, 128)), source("x1", rows, size(rng, 8, 128))
    first = x.shape[1]
    return mapped("concatenate", "layout", (x, y), (rows, first + y.shape[1]), lambda i, j: select(call("lt", j, first), x[i, j], y[i, j - first]))


@operator("layout")
def stack(rng: Random) -> Graph:
    """Return two vectors interleaved as columns."""
    x = source("x0", size(rng, 256, 8192))
    y = source("x1", x.size)
    return mapped("stack", "layout", (x, y), (x.size, 2), lambda i, j: select(call("eq", j, 0), x[i], y[i]))


# --- scans -----------------------------------------------------------------------------------------------------------------------------


def _scan(name: str, how: str, body: Body = _same, interval: Interval = (-1, 1)) -> None:
    @operator("scan", name)
    def make(rng: Random) -> Graph:
        x = source("x0", size(rng, 8, 128), size(rng, 16, 32 if how == "prod" else 256), interval=interval)
        axes, at = positions(x.shape)
        return graph(name, "scan", (x,), (Stage("y", axes, body(x[at]), scan=how),))  # type: ignore[arg-type]


_scan("cumsum", "sum")
_scan("cumprod", "prod", interval=(0.7, 1.3))
_scan("cummax", "max")
_scan("cumulative_energy", "sum", body=lambda x: x * x)
