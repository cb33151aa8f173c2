"""The kernels of speed_ladder.cu and speed_shared.cu with their data, as speed_works.py has those of speed.cu."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch.nn import functional

from benchmarks.transpile.work import Work, normal, zeros

RUNGS = {
    "naive": ("ladder_naive", (16, 16), (32, 32, 1)),
    "coalesced": ("ladder_coalesced", (16, 16), (1024, 1, 1)),
    "shared": ("ladder_shared_form<32>", (16, 16), (1024, 1, 1)),
    "column": ("ladder_column_form<64, 64, 8, 8>", (8, 8), (512, 1, 1)),
    "tile": ("ladder_tile_form<128, 128, 8, 8, 8>", (4, 4), (256, 1, 1)),
    "float4": ("ladder_float4_form<128, 128, 8, 8, 8>", (4, 4), (256, 1, 1)),
    "warp": ("ladder_warp_form<128, 128, 16, 64, 64, 4, 8, 4, 128>", (4, 4), (128, 1, 1)),
    "stages": ("ladder_stages_form<128, 128, 8, 8, 8>", (4, 4), (256, 1, 1)),
}
"""Rung of the ladder -> its kernel, grid and block for matrices of 512 rows and columns."""

INSTANCES = tuple(kernel for kernel, _, _ in RUNGS.values() if "<" in kernel)


def works(rng: np.random.Generator) -> Iterator[Work]:
    """Yield the kernels, each with its own inputs."""
    yield from _ladder(rng)
    yield from _stencils(rng)
    yield from _trees(rng)
    yield from _attention(rng)
    yield from _images(rng)
    yield from _others(rng)


def _ladder(rng: np.random.Generator) -> Iterator[Work]:
    n = 512
    a, b, c = normal(rng, n, n), normal(rng, n, n), zeros(n, n)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    arguments = (n, n, n, 1.0, a, b, 0.0, c)
    for rung, (kernel, grid, block) in RUNGS.items():
        yield Work(f"ladder {rung}", "512", grid, arguments, arguments, c, a.astype(float) @ b, lambda: ta @ tb, block, kernel, "ladder")


def _stencils(rng: np.random.Generator) -> Iterator[Work]:
    w = 1024
    s, o = normal(rng, w, w), zeros(w, w)
    want, d = np.zeros((w, w)), s.astype(float)
    want[1:-1, 1:-1] = 0.25 * (d[1:-1, :-2] + d[1:-1, 2:] + d[:-2, 1:-1] + d[2:, 1:-1])
    yield Work("stencil_shared", "1024x1024", (w // 16, w // 16), (s, o, w, w), (s, o, w, w), o, want, None, (16, 16, 1))
    n = 1 << 20
    x, y = normal(rng, n), zeros(n)
    want = np.convolve(x.astype(float), np.ones(9), "same")
    yield Work("stencil_row", "1 Mi", (n // 256,), (x, y, n), (x, y, n), y, want, None, (256, 1, 1))


def _trees(rng: np.random.Generator) -> Iterator[Work]:
    blocks = 4096
    x = normal(rng, blocks, 512)
    for kernel, size in (("tree_modulo", 256), ("tree_index", 256), ("tree_halving", 512)):
        part = np.ascontiguousarray(x.reshape(-1)[: blocks * size])
        out, rows = zeros(blocks), torch.from_numpy(part.reshape(blocks, size))
        want = part.reshape(blocks, size).astype(float).sum(1)
        yield Work(kernel, f"4096x{size}", (blocks,), (part, out), (part, out, blocks, size), out, want, partial(rows.sum, 1), (256, 1, 1), twin="tree")  # noqa: E501
    data, bins = rng.integers(0, 256, 1 << 22).astype(np.uint8), np.zeros(256, np.uint32)
    want, tdata = np.bincount(data, minlength=256).astype(float), torch.from_numpy(data)
    arguments = (data, bins, data.size)
    yield Work("histogram_global", "4 MiB", (data.size // 256,), arguments, arguments, bins, want, lambda: torch.bincount(tdata, minlength=256), (256, 1, 1),  # noqa: E501
               adds=True)  # fmt: skip


def _attention(rng: np.random.Generator) -> Iterator[Work]:
    heads, n, d = 4, 256, 64
    q, k, v, out = (normal(rng, heads, n, d) for _ in range(4))
    out[...] = 0
    scale = 1 / np.sqrt(d)
    s = q.astype(float) @ k.transpose(0, 2, 1) * scale
    e = np.exp(s - s.max(2, keepdims=True))
    want = e / e.sum(2, keepdims=True) @ v
    sums, largest = zeros(heads, n), zeros(heads, n)
    tq, tk, tv = (torch.from_numpy(a)[None] for a in (q, k, v))

    def fresh() -> None:
        sums[...], largest[...] = 0, -np.inf

    arguments = (q, k, v, n, d, float(scale), sums, largest, out)
    call = lambda: functional.scaled_dot_product_attention(tq, tk, tv)  # noqa: E731
    yield Work("flash", "4x256x64", (heads,), arguments, (q, k, v, heads, n, d, float(scale), out), out, want, call, (32, 1, 1), shared=4 * (3 * 32 * d + 1024),  # noqa: E501
               prepare=fresh)  # fmt: skip
    t = 256
    o = zeros(heads, t, t)
    want = np.where(np.triu(np.ones((t, t), bool), 1), -1e9, s)
    yield Work("scores", "4x256x64", (heads * t * t // 256,), (q, k, o, t, d, float(scale)), (q, k, o, heads, t, d, float(scale)), o, want, None, (256, 1, 1))  # noqa: E501
    rows, cols = 1024, 768
    x, gain, bias, y = normal(rng, rows, cols), normal(rng, cols), normal(rng, cols), zeros(rows, cols)
    w = x.astype(float)
    want = (w - w.mean(1, keepdims=True)) / np.sqrt(w.var(1, keepdims=True) + 1e-5) * gain + bias
    tx, tgain, tbias = (torch.from_numpy(a) for a in (x, gain, bias))
    call = lambda: functional.layer_norm(tx, (cols,), tgain, tbias)  # noqa: E731
    yield Work("layernorm_shared", "1024x768", (rows,), (x, gain, bias, y, cols), (x, gain, bias, y, rows, cols), y, want, call, (256, 1, 1))


def _images(rng: np.random.Generator) -> Iterator[Work]:
    w = 1024
    image, edges = rng.integers(0, 256, (w, w)).astype(np.uint8), np.zeros((w, w), np.uint8)
    p = np.pad(image.astype(int), 1, "edge")
    u, c, b = p[:-2], p[1:-1], p[2:]
    dx = u[:, 2:] + 2 * c[:, 2:] + b[:, 2:] - u[:, :-2] - 2 * c[:, :-2] - b[:, :-2]
    dy = b[:, :-2] + 2 * b[:, 1:-1] + b[:, 2:] - u[:, :-2] - 2 * u[:, 1:-1] - u[:, 2:]
    want = np.minimum(abs(dx) + abs(dy), 255).astype(float)
    arguments = (image, edges, w, w)
    yield Work("sobel", "1024x1024", (w // 32, w // 16), arguments, arguments, edges, want, None, (32, 16, 1))
    x, y = normal(rng, w, w), zeros(w, w)
    taps = np.array([.01, .02, .03, .04, .06, .08, .09, .1, .14, .1, .09, .08, .06, .04, .03, .02, .01])  # fmt: skip
    want = np.stack([np.convolve(row, taps, "same") for row in x.astype(float)])
    yield Work("filter_rows", "1024x1024", (w // 64, w // 4), (x, y, w, w), (x, y, w, w), y, want, None, (64, 4, 1))
    cells, after = (rng.random((w, w)) < 0.4).astype(np.int32), np.zeros((w, w), np.int32)
    count = sum(np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - cells
    want = ((count == 3) | ((count == 2) & (cells > 0))).astype(float)
    yield Work("life", "1024x1024", (w // 32, w // 8), (cells, after, w, w), (cells, after, w, w), after, want, None, (32, 8, 1))


def _collatz(n: int, most: int) -> np.ndarray:
    value, steps = np.arange(1, n + 1, dtype=np.uint32), np.zeros(n)
    for _ in range(most):
        open_ = value != 1
        steps += open_
        value = np.where(open_, np.where(value % 2 == 0, value // 2, 3 * value + 1), value).astype(np.uint32)
    return steps


def _others(rng: np.random.Generator) -> Iterator[Work]:
    n, k = 1 << 16, 64
    points, centres, best = normal(rng, 8, n), normal(rng, k, 8), np.zeros(n, np.int32)
    distance = ((points.astype(float)[:, :, None] - centres.T[:, None, :]) ** 2).sum(0)
    arguments = (points, centres, best, n, k)
    yield Work("nearest", "64 Ki, 64", (n // 256,), arguments, arguments, best, distance.argmin(1).astype(float), None, (256, 1, 1))
    n = 1 << 20
    x, y = normal(rng, n), zeros(n)
    tx = torch.from_numpy(x)
    yield Work("relu4", "1 Mi", (n // 1024,), (x, y, n), (x, y, n), y, np.maximum(x, 0).astype(float), lambda: torch.relu(tx), (256, 1, 1))
    rows, half = 4096, 64
    x, angle, y = normal(rng, rows, half, 2), normal(rng, half), zeros(rows, half, 2)
    c, s, v = np.cos(angle.astype(float)), np.sin(angle.astype(float)), x.astype(float)
    want = np.stack([v[..., 0] * c - v[..., 1] * s, v[..., 0] * s + v[..., 1] * c], -1)
    arguments = (x, angle, y, rows * half, half)
    yield Work("rope", "4096x64", (rows * half // 256,), arguments, arguments, y, want, None, (256, 1, 1))
    n, most = 1 << 15, 100
    steps = np.zeros(n, np.int32)
    yield Work("collatz", "32 Ki, 100", (n // 128,), (steps, n, most), (steps, n, most), steps, _collatz(n, most), None, (128, 1, 1))
    rows, cols = 4096, 256
    a, x, y = normal(rng, rows, cols), normal(rng, cols), zeros(rows)
    ta, tx2 = torch.from_numpy(a), torch.from_numpy(x)
    arguments = (a, x, y, rows, cols)
    yield Work("row_products", "4096x256", (rows // 256,), arguments, arguments, y, a.astype(float) @ x, lambda: ta @ tx2, (256, 1, 1))
