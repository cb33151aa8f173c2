"""The kernels of speed_outside.cu and speed_unopened.cu with their data: kinds that the compiler was not built on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.transpile.work import Work, normal, zeros


def works(rng: np.random.Generator) -> Iterator[Work]:
    """Yield the kernels, each with its own inputs."""
    yield from _images(rng)
    yield from _rows(rng)
    yield from _others(rng)
    yield from _unopened(rng)


def _images(rng: np.random.Generator) -> Iterator[Work]:
    c, h, k = 16, 96, 3
    image, columns = normal(rng, c, h, h), zeros(c, k, k, h, h)
    p = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    want = np.stack([np.stack([p[:, i : i + h, j : j + h] for j in range(k)], 1) for i in range(k)], 1).astype(float)
    n = columns.size
    yield Work("im2col", "16x96x96, 3", ((n + 255) // 256,), (image, columns, n, h, h, k, h, h), (image, columns, c, h, h, k), columns, want, None)
    w, colour = 1024, 1
    u, f, first = zeros(w, w), normal(rng, w, w), normal(rng, w, w)
    want, y, x = first.astype(float), *np.mgrid[1 : w - 1, 1 : w - 1]
    new = 0.25 * (want[1:-1, :-2] + want[1:-1, 2:] + want[:-2, 1:-1] + want[2:, 1:-1] - f[1:-1, 1:-1])
    want[1:-1, 1:-1] = np.where((x + y) % 2 == colour, new, want[1:-1, 1:-1])

    def fresh() -> None:
        u[...] = first

    yield Work("red_black", "1024x1024", (w // 32, w // 8), (u, f, w, w, colour), (u, f, w, w, colour), u, want, None, (32, 8, 1), prepare=fresh)
    c, h, o = 16, 96, 192
    image, out = normal(rng, c, h, h), zeros(c, o, o)
    at = np.maximum((np.arange(o) + 0.5) * h / o - 0.5, 0)
    low = at.astype(int)
    high, share = np.minimum(low + 1, h - 1), at - low
    d = image.astype(float)
    rows = d[:, low] * (1 - share)[:, None] + d[:, high] * share[:, None]
    want = rows[:, :, low] * (1 - share) + rows[:, :, high] * share
    arguments: tuple[Any, ...] = (h, h, o, o, h / o, h / o)
    yield Work("resize", "16x96x96, 2x", (c * o * o // 256,), (image, out, c * o * o, *arguments), (image, out, c, *arguments), out, want, None)


def _rows(rng: np.random.Generator) -> Iterator[Work]:
    rows, cols = 2048, 256
    x, y = normal(rng, rows, cols), zeros(rows, cols)
    want, state, decay = np.zeros((rows, cols)), np.zeros(rows), 0.9
    for c in range(cols):
        state = decay * state + (1 - decay) * x[:, c]
        want[:, c] = state
    yield Work("ema", "2048x256", (rows // 128,), (x, y, rows, cols, decay), (x, y, rows, cols, decay), y, want, None, (128, 1, 1))
    sums = zeros(rows, cols)
    arguments: tuple[Any, ...] = (x, sums, rows, cols)
    yield Work("cumsum_rows", "2048x256", (rows // 128,), arguments, arguments, sums, x.astype(float).cumsum(1), None, (128, 1, 1))
    best = np.zeros(rows, np.int32)
    arguments = (x, best, rows, cols)
    yield Work("argmax_rows", "2048x256", (rows // 128,), arguments, arguments, best, x.argmax(1).astype(float), None, (128, 1, 1))
    q, scales = np.zeros((rows, cols), np.int8), zeros(rows)
    scale = np.abs(x).max(1, keepdims=True) / np.float32(127)
    want = np.rint(x * (np.float32(1) / scale)).astype(float)
    yield Work("quantise_rows", "2048x256", (rows,), (x, q, scales, cols), (x, q, scales, rows, cols), q, want, None)
    tokens, experts = 16384, 8
    logits, expert, gate = normal(rng, tokens, experts), np.zeros(tokens, np.int32), zeros(tokens)
    d = logits.astype(float)
    want = 1 / np.exp(d - d.max(1, keepdims=True)).sum(1)
    arguments = (logits, expert, gate, tokens, experts)
    yield Work("route", "16384, 8", (tokens // 256,), arguments, arguments, gate, want, None)


def _others(rng: np.random.Generator) -> Iterator[Work]:
    rows, width, each = 4096, 128, 16
    start = np.arange(rows + 1, dtype=np.int32) * each
    column, value = rng.integers(0, rows, rows * each).astype(np.int32), normal(rng, rows * each)
    b, out = normal(rng, rows, width), zeros(rows, width)
    want = (value.astype(float)[:, None] * b[column]).reshape(rows, each, width).sum(1)
    arguments: tuple[Any, ...] = (start, column, value, b, out, rows, width)
    yield Work("spmm", "4096, 16 a row, 128", (rows // 8, width // 32), arguments, arguments, out, want, None, (32, 8, 1))
    rows, cols = 1024, 768
    d, x, means, scales = normal(rng, rows, cols), normal(rng, rows, cols), normal(rng, rows), normal(rng, rows)
    dweight, dbias = zeros(cols), zeros(cols)
    want = (d.astype(float) * (x - means.astype(float)[:, None]) * scales[:, None]).sum(0)
    arguments = (d, x, means, scales, dweight, dbias, rows, cols)
    yield Work("weight_gradients", "1024x768", (cols // 32,), arguments, arguments, dweight, want, None, (32, 8, 1))


def _unopened(rng: np.random.Generator) -> Iterator[Work]:
    n, c, h = 2, 32, 64
    x, k, bias, out = normal(rng, n, c, h, h), normal(rng, c, 3, 3), normal(rng, c), zeros(n, c, h, h)
    p = np.pad(x.astype(float), ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = bias[:, None, None] + sum(p[:, :, i : i + h, j : j + h] * k[:, i, j, None, None] for i in range(3) for j in range(3))
    arguments: tuple[Any, ...] = (x, k, bias, out)
    yield Work("depthwise", "2x32x64x64", (x.size // 256,), (*arguments, x.size, c, h, h), (*arguments, n, c, h, h), out, want, None)
    n = 1024
    low = rng.random((n, 2)).astype(np.float32)
    boxes, mask = np.concatenate([low, low + 0.05 + 0.2 * rng.random((n, 2)).astype(np.float32)], 1), np.zeros((n, n // 64), np.uint64)
    sides = np.maximum(np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - np.maximum(boxes[:, None, :2], boxes[None, :, :2]), np.float32(0))
    both, area = sides.prod(2), (boxes[:, 2:] - boxes[:, :2]).prod(1)
    over = both > np.float32(0.3) * (area[:, None] + area - both)
    want = np.packbits(over, 1, bitorder="little").view(np.uint64).astype(float)
    yield Work("overlaps", "1024", (n // 64, n // 64), (boxes, n, 0.3, mask), (boxes, n, 0.3, mask), mask, want, None, (64, 1, 1))
    images, c, h, groups = 8, 64, 32, 8
    x, gain, bias, y = normal(rng, images, c, h, h), normal(rng, c), normal(rng, c), zeros(images, c, h, h)
    d = x.astype(float).reshape(images, groups, -1)
    d = ((d - d.mean(2, keepdims=True)) / np.sqrt(d.var(2, keepdims=True) + 1e-5)).reshape(x.shape)
    want, each = d * gain[:, None, None] + bias[:, None, None], c // groups
    sizes = (h * h, each, groups)
    yield Work("group_norm", "8x64x32x32, 8", (images * groups,), (x, gain, bias, y, each * h * h, *sizes), (x, gain, bias, y, images * groups, *sizes), y, want, None)  # noqa: E501
    n, seed, share = 1 << 20, 12345, 0.25
    x, y, kept = normal(rng, n), zeros(n), np.zeros(n, np.uint8)
    v = np.arange(n, dtype=np.uint32) ^ np.uint32(seed)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        v = (v ^ (v >> np.uint32(shift))) * np.uint32(factor)
    want = np.where((v >> np.uint32(8)) / 16777216 >= share, x.astype(float) / (1 - share), 0)
    arguments = (x, y, kept, n, seed, share)
    yield Work("dropout", "1 Mi", (256,), arguments, arguments, y, want, None)
    w = 1024
    x, y, first = normal(rng, w, w), zeros(w, w), normal(rng, w, w)

    def fresh() -> None:
        y[...] = first

    want = x.T.astype(float) + first
    yield Work("transpose_add", "1024x1024", (w // 32, w // 32), (x, y, w, w), (x, y, w, w), y, want, None, (32, 8, 1), prepare=fresh)
