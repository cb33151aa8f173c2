"""The kernels of speed_llm.cu with their data, as speed_works.py has those of speed.cu."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.transpile.work import Work, normal, zeros

B, T, C, NH, V = 4, 256, 384, 6, 4096
"""Batch, positions, channels, heads and words."""


def works(rng: np.random.Generator) -> Iterator[Work]:
    """Yield the kernels, each with its own inputs."""
    yield from _embeddings(rng)
    yield from _norms(rng)
    yield from _softmaxes(rng)
    yield from _heads(rng)
    yield from _elementwise(rng)
    yield from _classes(rng)
    yield from _products(rng)
    yield from _scans(rng)
    yield from _others(rng)


def _parts(*shapes: tuple[int, ...]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return one array, and parts of it with these shapes: a kernel's outputs are checked together."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    whole = zeros(sum(sizes))
    ends = np.cumsum(sizes)
    return whole, [whole[end - size : end].reshape(shape) for end, size, shape in zip(ends, sizes, shapes, strict=True)]


def _flat(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate([a.reshape(-1) for a in arrays])


def _embeddings(rng: np.random.Generator) -> Iterator[Work]:
    tokens, words, places, out = rng.integers(0, V, B * T).astype(np.int32), normal(rng, V, C), normal(rng, T, C), zeros(B * T, C)
    want = words[tokens].astype(float) + np.tile(places, (B, 1))
    arguments: tuple[Any, ...] = (tokens, words, places, out, B, T, C)
    yield Work("embed", f"{B}x{T}x{C}", (B * T * C // 256,), arguments, arguments, out, want, None)
    dout = normal(rng, B * T, C)
    both, (dwords, dplaces) = _parts((V, C), (T, C))
    word_sums = np.zeros((V, C))
    np.add.at(word_sums, tokens, dout.astype(float))
    want = _flat(word_sums, dout.astype(float).reshape(B, T, C).sum(0))
    arguments = (tokens, dwords, dplaces, dout, B, T, C)
    yield Work("embed_backward", f"{B}x{T}x{C}", (B * T * C // 256,), arguments, arguments, both, want, None, adds=True)


def _norms(rng: np.random.Generator) -> Iterator[Work]:
    rows = B * T
    x, weight, bias = normal(rng, rows, C), normal(rng, C), normal(rng, C)
    whole, (out, means, scales) = _parts((rows, C), (rows,), (rows,))
    d = x.astype(float)
    mean, scale = d.mean(1), 1 / np.sqrt(d.var(1) + 1e-5)
    want = _flat((d - mean[:, None]) * scale[:, None] * weight + bias, mean, scale)
    tx, tweight, tbias = (torch.from_numpy(a) for a in (x, weight, bias))
    call = lambda: functional.layer_norm(tx, (C,), tweight, tbias)  # noqa: E731
    arguments: tuple[Any, ...] = (out, means, scales, x, weight, bias, rows, C)
    yield Work("norm_naive", f"{rows}x{C}", (rows // 256,), arguments, arguments, whole, want, call, twin="norm")
    yield Work("norm_groups", f"{rows}x{C}", (rows // 8,), arguments, arguments, whole, want, call, twin="norm")
    dout = normal(rng, rows, C)
    given_mean, given_scale = mean.astype(np.float32), scale.astype(np.float32)
    whole, (dx, dweight, dbias) = _parts((rows, C), (C,), (C,))
    n, g = (d - mean[:, None]) * scale[:, None], dout.astype(float) * weight
    dinput = (g - g.mean(1, keepdims=True) - n * (g * n).mean(1, keepdims=True)) * scale[:, None]
    want = _flat(dinput, (n * dout).sum(0), dout.astype(float).sum(0))
    arguments = (dx, dweight, dbias, dout, x, weight, given_mean, given_scale, rows, C)
    yield Work("norm_backward", f"{rows}x{C}", (rows // 8,), arguments, arguments, whole, want, None, shared=8 * C, adds=True)


def _softmaxes(rng: np.random.Generator) -> Iterator[Work]:
    rows, cols = 1024, 1024
    x, y = normal(rng, rows, cols), zeros(rows, cols)
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    tx = torch.from_numpy(x)
    arguments: tuple[Any, ...] = (y, x, rows, cols)
    want = e / e.sum(1, keepdims=True)
    yield Work("softmax_naive", "1024x1024", (rows // 32,), arguments, arguments, y, want, lambda: tx.softmax(1), (32, 1, 1))
    n, t = B * NH, T
    x, y = normal(rng, n, t, t), zeros(n, t, t)
    masked = np.where(np.tril(np.ones((t, t), bool)), x.astype(float), -np.inf) * 0.125
    e = np.exp(masked - masked.max(2, keepdims=True))
    arguments = (y, 0.125, x, n, t)
    yield Work("softmax_online", f"{n}x{t}x{t}", (n * t // 8,), arguments, arguments, y, e / e.sum(2, keepdims=True), None)


def _heads(rng: np.random.Generator) -> Iterator[Work]:
    size = C // NH
    weights, qkv, out = np.tril(rng.random((B, NH, T, T))).astype(np.float32) / T, normal(rng, B, T, 3, NH, size), zeros(B, T, C)
    want = np.einsum("bhtu,buhd->bthd", weights.astype(float), qkv[:, :, 2].astype(float)).reshape(B, T, C)
    arguments: tuple[Any, ...] = (out, weights, qkv, B, T, C, NH)
    yield Work("attend_values", f"{B}x{T}x{C}", (B * T * NH // 256,), arguments, arguments, out, want, None)
    whole, (q, k, v) = _parts(*[(B, NH, T, size)] * 3)
    want = _flat(*(qkv[:, :, i].transpose(0, 2, 1, 3).astype(float) for i in range(3)))
    arguments = (q, k, v, qkv, B, T, NH, size)
    yield Work("split_heads", f"{B}x{T}x{C}", (B * T * C // 256,), arguments, arguments, whole, want, None)


def _elementwise(rng: np.random.Generator) -> Iterator[Work]:
    n = 1 << 20
    grid = (n // 256,)
    x, other, y = normal(rng, n), normal(rng, n), zeros(n)
    tx, tother = torch.from_numpy(x), torch.from_numpy(other)
    d = x.astype(float)
    t = np.tanh(0.7978845608 * (d + 0.044715 * d**3))
    call = lambda: functional.gelu(tx, approximate="tanh")  # noqa: E731
    yield Work("gelu_forward", "1 Mi", grid, (y, x, n), (y, x, n), y, 0.5 * d * (1 + t), call)
    want = (0.5 * (1 + t) + d * 0.5 * (1 - t * t) * 0.7978845608 * (1 + 3 * 0.044715 * d * d)) * other
    yield Work("gelu_backward", "1 Mi", grid, (y, x, other, n), (y, x, other, n), y, want, None)
    yield Work("residual", "1 Mi", grid, (y, x, other, n), (y, x, other, n), y, d + other, lambda: tx + tother)
    whole, (params, m, v) = _parts((n,), (n,), (n,))
    begun = _flat(normal(rng, n), normal(rng, n), rng.random(n).astype(np.float32))

    def fresh() -> None:
        whole[...] = begun

    p0, m0, v0 = begun.astype(float).reshape(3, n)
    m1, v1 = 0.9 * m0 + 0.1 * d, 0.999 * v0 + 0.001 * d * d
    want = _flat(p0 - 1e-3 * (m1 / 0.1 / (np.sqrt(v1 / 0.001) + 1e-8) + 0.1 * p0), m1, v1)
    numbers = (1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.1)
    yield Work("adamw", "1 Mi", grid, (params, x, m, v, n, *numbers), (params, x, m, v, ctypes.c_long(n), *numbers), whole, want, None, prepare=fresh)


def _classes(rng: np.random.Generator) -> Iterator[Work]:
    rows = B * T
    probs, targets, losses = rng.random((rows, V)).astype(np.float32) + 0.01, rng.integers(0, V, rows).astype(np.int32), zeros(rows)
    arguments: tuple[Any, ...] = (losses, probs, targets, B, T, V)
    want = -np.log(probs[np.arange(rows), targets].astype(float))
    yield Work("losses_of", f"{rows}x{V}", (rows // 128,), arguments, arguments, losses, want, None, (128, 1, 1))
    dlosses, dlogits = normal(rng, rows), zeros(rows, V)
    want = (probs.astype(float) - (np.arange(V) == targets[:, None])) * dlosses[:, None]
    arguments = (dlogits, dlosses, probs, targets, B, T, V)
    yield Work("logits_backward", f"{rows}x{V}", (rows * V // 256,), arguments, arguments, dlogits, want, None, adds=True)


def _products(rng: np.random.Generator) -> Iterator[Work]:
    rows, outputs = 512, 512
    x, weight, bias, out = normal(rng, rows, C), normal(rng, outputs, C), normal(rng, outputs), zeros(rows, outputs)
    tx, tweight, tbias = (torch.from_numpy(a) for a in (x, weight, bias))
    arguments: tuple[Any, ...] = (out, x, weight, bias, rows, C, outputs)
    call = lambda: functional.linear(tx, tweight, tbias)  # noqa: E731
    yield Work("linear_forward", f"{rows}x{C}x{outputs}", (rows // 16, outputs // 16), arguments, arguments, out, x.astype(float) @ weight.T + bias, call, (16, 16, 1))  # noqa: E501
    rows = B * T
    dout, dbias = normal(rng, rows, C), zeros(C)
    arguments = (dbias, dout, rows, C)
    yield Work("bias_backward", f"{rows}x{C}", (C,), arguments, arguments, dbias, dout.astype(float).sum(0), None, shared=1024, adds=True)


def _scans(rng: np.random.Generator) -> Iterator[Work]:
    n = 1 << 20
    x, y, total = normal(rng, n), zeros(n), zeros(1)
    flat = torch.from_numpy(x)
    rows = flat.view(-1, 256)
    want = x.reshape(-1, 256).astype(float).cumsum(1).reshape(-1)
    for kernel in ("scan_steps", "scan_warps"):
        yield Work(kernel, "4096x256", (n // 256,), (x, y, n), (x, y, n), y, want, lambda: rows.cumsum(1), twin="scan_blocks")
    d = x.astype(float)
    arguments: tuple[Any, ...] = (total, x, n)
    yield Work("squares_sum", "1 Mi", (128,), arguments, (total, x, ctypes.c_long(n)), total, (d * d).sum(keepdims=True), lambda: flat.dot(flat),
               adds=True)  # fmt: skip
    yield Work("reduce_groups", "1 Mi", (128,), (x, total, n), (x, total, n), total, d.sum(keepdims=True), lambda: flat.sum(), adds=True)


def _others(rng: np.random.Generator) -> Iterator[Work]:
    w = 1024
    x, y = normal(rng, w, w), zeros(w, w)
    tx = torch.from_numpy(x)
    arguments: tuple[Any, ...] = (x, y, w, w)
    yield Work("transpose_naive", "1024x1024", (w // 32, w // 8), arguments, arguments, y, x.T.astype(float), lambda: tx.t().contiguous(), (32, 8, 1))
    n, j, k = 1 << 20, 64, 1024
    begun, s = normal(rng, n), zeros(n)
    pairs = begun.reshape(-1, 2, j).astype(float)
    low, high, up = pairs.min(1), pairs.max(1), (np.arange(n).reshape(-1, 2, j)[:, 0] & k) == 0
    want = np.stack([np.where(up, low, high), np.where(up, high, low)], 1).reshape(-1)

    def fresh() -> None:
        s[...] = begun

    yield Work("bitonic_step", "1 Mi", (n // 256,), (s, j, k), (s, j, k, n), s, want, None, prepare=fresh)
    rows = 1 << 14
    counts = rng.integers(0, 65, rows)
    start = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    column = np.concatenate([np.sort(rng.choice(rows, count, replace=False)) for count in counts]).astype(np.int32)
    value, x, y = normal(rng, column.size), normal(rng, rows), zeros(rows)
    want = np.bincount(np.repeat(np.arange(rows), counts), value.astype(float) * x[column], rows)
    arguments = (start, column, value, x, y, rows)
    yield Work("spmv_rows", "16 Ki, 32 a row", (rows // 256,), arguments, arguments, y, want, None)
    n, soft = 2048, 0.01
    body, force = normal(rng, n, 4), zeros(n, 3)
    d = body.astype(float)
    apart = d[None, :, :3] - d[:, None, :3]
    want = np.einsum("ijk,ij->ik", apart, d[None, :, 3] * ((apart**2).sum(2) + soft) ** -1.5)
    yield Work("nbody_naive", str(n), (n // 256,), (body, force, n, soft), (body, force, n, soft), force, want, None)
    w, depth = 256, 32
    x, y = normal(rng, depth, w, w), zeros(depth, w, w)
    d, want = x.astype(float), np.zeros((depth, w, w))
    inner = (slice(1, -1),) * 3
    near = sum(np.roll(d, step, axis) for axis in range(3) for step in (1, -1))
    want[inner] = (0.4 * d + 0.1 * near)[inner]
    arguments = (x, y, w, w, depth)
    yield Work("stencil_sheets", f"{depth}x{w}x{w}", (w // 32, w // 8), arguments, arguments, y, want, None, (32, 8, 1))
