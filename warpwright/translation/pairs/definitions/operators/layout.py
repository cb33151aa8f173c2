"""Operators that only move elements: transposes, slices, padding, packing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from warpwright.translation.pairs.definitions.expr import Expr, Graph, Tensor, call, select, within
from warpwright.translation.pairs.definitions.operators.table import Table, mapped, size, source, tensor_shape

TABLE = Table()
operator = TABLE.operator


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


def _blocks(name: str, make: Callable[[Random], tuple[Tensor, tuple[int, ...], Callable[..., Expr]]]) -> None:
    @operator("layout", name)
    def draw(rng: Random) -> Graph:
        x, shape, body = make(rng)
        return mapped(name, "layout", (x,), shape, body)


def _space_to_depth(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    n, c, h, w, b = size(rng, 1, 4), size(rng, 1, 8), size(rng, 4, 16), size(rng, 4, 16), 2
    x = source("x0", n, c, h * b, w * b)
    return x, (n, c * b * b, h, w), lambda i, k, p, q: x[i, k % c, p * b + (k // c) // b, q * b + (k // c) % b]


def _depth_to_space(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    n, c, h, w, b = size(rng, 1, 4), size(rng, 1, 8), size(rng, 4, 16), size(rng, 4, 16), 2
    x = source("x0", n, c * b * b, h, w)
    return x, (n, c, h * b, w * b), lambda i, k, p, q: x[i, ((p % b) * b + q % b) * c + k, p // b, q // b]


def _pixel_shuffle(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    n, c, h, w, b = size(rng, 1, 4), size(rng, 1, 8), size(rng, 4, 16), size(rng, 4, 16), 2
    x = source("x0", n, c * b * b, h, w)
    return x, (n, c, h * b, w * b), lambda i, k, p, q: x[i, k * (b * b) + (p % b) * b + q % b, p // b, q // b]


def _channel_shuffle(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    groups, per, length = rng.choice((2, 3, 4)), size(rng, 2, 16), size(rng, 16, 256)
    x = source("x0", size(rng, 1, 4), groups * per, length)
    return x, x.shape, lambda n, c, i: x[n, (c % groups) * per + c // groups, i]


def _zero_pad(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    x, p = source("x0", size(rng, 1, 6), size(rng, 8, 64), size(rng, 8, 64)), rng.choice((1, 2, 3))
    _, h, w = x.shape
    return x, (x.shape[0], h + 2 * p, w + 2 * p), lambda n, i, j: select(call("and", within(i - p, h), within(j - p, w)), x[n, i - p, j - p], 0.0)


def _triangle(upper: bool) -> Callable[[Random], tuple[Tensor, tuple[int, ...], Callable[..., Expr]]]:
    def make(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
        x = source("x0", size(rng, 1, 4), size(rng, 16, 96), size(rng, 16, 96))
        return x, x.shape, lambda n, i, j: select(call("le", i, j) if upper else call("le", j, i), x[n, i, j], 0.0)

    return make


def _dilate(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    x, s = source("x0", size(rng, 8, 64), size(rng, 8, 64)), rng.choice((2, 3))
    h, w = x.shape
    shape = ((h - 1) * s + 1, (w - 1) * s + 1)
    return x, shape, lambda i, j: select(call("and", call("eq", i % s, 0), call("eq", j % s, 0)), x[i // s, j // s], 0.0)


def _pack_channels(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    block = rng.choice((4, 8, 16))
    x = source("x0", size(rng, 1, 4), block * size(rng, 1, 4), size(rng, 4, 16), size(rng, 4, 16))
    n, c, h, w = x.shape
    return x, (n, c // block, h, w, block), lambda b, k, i, j, v: x[b, k * block + v, i, j]


def _unpack_channels(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    block = rng.choice((4, 8, 16))
    x = source("x0", size(rng, 1, 4), size(rng, 1, 4), size(rng, 4, 16), size(rng, 4, 16), block)
    n, c, h, w, _ = x.shape
    return x, (n, c * block, h, w), lambda b, k, i, j: x[b, k // block, i, j, k % block]


def _diagonal_matrix(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    x = source("x0", size(rng, 32, 200))
    return x, (x.size, x.size), lambda i, j: select(call("eq", i, j), x[i], 0.0)


def _unfold(rng: Random) -> tuple[Tensor, tuple[int, ...], Callable[..., Expr]]:
    window, step = rng.choice((3, 4, 5)), rng.choice((1, 2))
    x = source("x0", size(rng, 2, 16), size(rng, 32, 256))
    return x, (x.shape[0], (x.shape[1] - window) // step + 1, window), lambda c, i, k: x[c, i * step + k]


for _name, _make in (
    ("space_to_depth", _space_to_depth), ("depth_to_space", _depth_to_space), ("pixel_shuffle", _pixel_shuffle),
    ("channel_shuffle", _channel_shuffle),
    ("zero_pad", _zero_pad), ("triu", _triangle(True)), ("tril", _triangle(False)), ("dilate", _dilate), ("pack_channels", _pack_channels),
    ("unpack_channels", _unpack_channels), ("diagonal_matrix", _diagonal_matrix), ("unfold", _unfold),
):  # fmt: skip
    _blocks(_name, _make)


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
