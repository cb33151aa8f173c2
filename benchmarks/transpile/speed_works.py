"""The kernels of speed.py with their data: launch shapes, inputs from seed 0, the answer in float64, torch's call where there is one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from benchmarks.transpile import speed_works_llm, speed_works_shared
from benchmarks.transpile.work import Work
from benchmarks.transpile.work import normal as _normal
from benchmarks.transpile.work import zeros as _zeros

BLOCKS = {
    "saxpy": (256, 1, 1),
    "gemm": (16, 16, 1),
    "stencil": (32, 8, 1),
    "softmax": (256, 1, 1),
    "reduce": (256, 1, 1),
    "histogram": (256, 1, 1),
    "transpose": (32, 8, 1),
    "layernorm": (256, 1, 1),
    "rmsnorm": (256, 1, 1),
    "matvec": (256, 1, 1),
    "scan": (256, 1, 1),
    "conv3x3": (32, 8, 1),
    "nbody": (256, 1, 1),
    "blackscholes": (256, 1, 1),
    "gather": (128, 1, 1),
    "maxpool": (32, 8, 1),
    "gelu_bias": (256, 1, 1),
    "cross_entropy": (256, 1, 1),
    "spmv": (256, 1, 1),
    "bitonic": (512, 1, 1),
    "dot": (256, 1, 1),
}

ADDING = ("saxpy", "reduce", "histogram", "dot")
"""These add to what their output holds."""

CORE = ("gemm", "stencil", "softmax", "histogram", "reduce")
"""The five core kernels: their geometric mean is a row of its own."""


def works() -> Iterator[Work]:
    """Yield the kernels, each with its own inputs."""
    rng = np.random.default_rng(0)
    for make in (
        *(saxpy, gemm_256, gemm_512, stencil, softmax, reduce, histogram, transpose),
        *(layernorm, rmsnorm, matvec, scan, conv3x3, nbody, blackscholes, gather, maxpool, gelu_bias, cross_entropy, spmv, bitonic, dot),
    ):
        work = make(rng)
        yield replace(work, block=BLOCKS[work.name], adds=work.name in ADDING)
    yield from speed_works_shared.works(rng)
    yield from speed_works_llm.works(rng)


def saxpy(rng: np.random.Generator) -> Work:
    n = 1 << 20
    x, y = _normal(rng, n), _zeros(n)
    tx, ty = torch.from_numpy(x), torch.zeros(n)
    arguments = (n, 2.0, x, y)
    return Work("saxpy", "1 Mi", (n // 256,), arguments, arguments, y, 2.0 * x, lambda: ty.add_(tx, alpha=2.0))


def gemm_256(rng: np.random.Generator) -> Work:
    return _gemm(rng, 256)


def gemm_512(rng: np.random.Generator) -> Work:
    return _gemm(rng, 512)


def _gemm(rng: np.random.Generator, size: int) -> Work:
    a, b, c = _normal(rng, size, size), _normal(rng, size, size), _zeros(size, size)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    arguments = (a, b, c, size, size, size)
    return Work("gemm", str(size), (size // 16, size // 16), arguments, arguments, c, a.astype(float) @ b, lambda: ta @ tb)


def stencil(rng: np.random.Generator) -> Work:
    w = 1024
    s, o = _normal(rng, w, w), _zeros(w, w)
    want = np.zeros((w, w))
    d = s.astype(float)
    want[1:-1, 1:-1] = 0.25 * (d[1:-1, :-2] + d[1:-1, 2:] + d[:-2, 1:-1] + d[2:, 1:-1])
    return Work("stencil", "1024x1024", (w // 32, w // 8), (s, o, w, w), (s, o, w, w), o, want, None)


def softmax(rng: np.random.Generator) -> Work:
    rows, cols = 512, 1024
    x, y = _normal(rng, rows, cols), _zeros(rows, cols)
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    tx = torch.from_numpy(x)
    return Work("softmax", "512x1024", (rows,), (x, y, cols), (x, y, rows, cols), y, e / e.sum(1, keepdims=True), lambda: tx.softmax(1))


def reduce(rng: np.random.Generator) -> Work:
    x, total = _normal(rng, 1 << 22), _zeros(1)
    tx = torch.from_numpy(x)
    arguments = (x, total, x.size)
    return Work("reduce", "4 Mi", (256,), arguments, arguments, total, x.astype(float).sum(keepdims=True), lambda: tx.sum())


def histogram(rng: np.random.Generator) -> Work:
    data, bins = rng.integers(0, 256, 1 << 22).astype(np.uint8), np.zeros(256, np.uint32)
    tdata = torch.from_numpy(data)
    arguments = (data, bins, data.size)
    want = np.bincount(data, minlength=256)
    return Work("histogram", "4 MiB", (128,), arguments, arguments, bins, want, lambda: torch.bincount(tdata, minlength=256))


def transpose(rng: np.random.Generator) -> Work:
    x, y = _normal(rng, 1024, 1024), _zeros(1024, 1024)
    tx = torch.from_numpy(x)
    return Work("transpose", "1024x1024", (32, 32), (x, y, 1024), (x, y, 1024), y, x.T.astype(float), lambda: tx.t().contiguous())


def layernorm(rng: np.random.Generator) -> Work:
    rows, cols = 2048, 768
    x, gain, bias, y = _normal(rng, rows, cols), _normal(rng, cols), _normal(rng, cols), _zeros(rows, cols)
    d = x.astype(float)
    want = (d - d.mean(1, keepdims=True)) / np.sqrt(d.var(1, keepdims=True) + 1e-5) * gain + bias
    tx, tgain, tbias = (torch.from_numpy(a) for a in (x, gain, bias))
    call = lambda: functional.layer_norm(tx, (cols,), tgain, tbias, 1e-5)  # noqa: E731
    return Work("layernorm", "2048x768", (rows,), (x, gain, bias, y, cols, 1e-5), (x, gain, bias, y, rows, cols, 1e-5), y, want, call)


def rmsnorm(rng: np.random.Generator) -> Work:
    rows, cols = 4096, 512
    x, gain, y = _normal(rng, rows, cols), _normal(rng, cols), _zeros(rows, cols)
    d = x.astype(float)
    want = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * gain
    tx, tgain = torch.from_numpy(x), torch.from_numpy(gain)
    arguments = (x, gain, y, rows, cols, 1e-5)
    return Work("rmsnorm", "4096x512", (rows // 8,), arguments, arguments, y, want, lambda: functional.rms_norm(tx, (cols,), tgain, 1e-5))


def matvec(rng: np.random.Generator) -> Work:
    batches, rows, cols = 16, 256, 512
    a, x, y = _normal(rng, batches, rows, cols), _normal(rng, batches, cols, 1), _zeros(batches, rows, 1)
    ta, tx = torch.from_numpy(a), torch.from_numpy(x)
    want = a.astype(float) @ x
    return Work("matvec", "16x256x512", (rows // 8, batches), (a, x, y, rows, cols), (a, x, y, batches, rows, cols), y, want, lambda: ta.bmm(tx))


def scan(rng: np.random.Generator) -> Work:
    rows = 2048
    x, y = _normal(rng, rows, 512), _zeros(rows, 512)
    want = x.astype(float).cumsum(1) - x
    tx = torch.from_numpy(x)
    return Work("scan", "2048x512", (rows,), (x, y), (x, y, rows), y, want, lambda: tx.cumsum(1))


def conv3x3(rng: np.random.Generator) -> Work:
    w = 1024
    x, weight, y = _normal(rng, w, w), _normal(rng, 3, 3), _zeros(w, w)
    wide = np.pad(x.astype(float), 1)
    want = sum(weight[i, j] * wide[i : i + w, j : j + w] for i in range(3) for j in range(3))
    tx, tweight = torch.from_numpy(x)[None, None], torch.from_numpy(weight)[None, None]
    arguments = (x, weight, y, w, w)
    return Work("conv3x3", "1024x1024", (w // 32, w // 8), arguments, arguments, y, want, lambda: functional.conv2d(tx, tweight, padding=1))


def nbody(rng: np.random.Generator) -> Work:
    n, soft = 2048, 0.01
    body, force = _normal(rng, n, 4), _zeros(n, 4)
    d = body.astype(float)
    apart = d[None, :, :3] - d[:, None, :3]
    want = np.zeros((n, 4))
    want[:, :3] = np.einsum("ijk,ij->ik", apart, d[None, :, 3] * ((apart**2).sum(2) + soft) ** -1.5)
    return Work("nbody", str(n), (n // 256,), (body, force, n, soft), (body, force, n, soft), force, want, None)


def blackscholes(rng: np.random.Generator) -> Work:
    n, rate, spread = 1 << 18, 0.02, 0.3
    price, strike, years = (rng.uniform(low, high, n).astype(np.float32) for low, high in ((5, 30), (1, 100), (0.25, 10)))
    both = _zeros(2, n)
    s, k, t = (torch.from_numpy(a).double() for a in (price, strike, years))
    d1 = (torch.log(s / k) + (rate + 0.5 * spread * spread) * t) / (spread * t.sqrt())
    share = lambda d: 0.5 * torch.erfc(-d * math.sqrt(0.5))  # noqa: E731
    call = s * share(d1) - k * torch.exp(-rate * t) * share(d1 - spread * t.sqrt())
    want = torch.stack([call, call + k * torch.exp(-rate * t) - s]).numpy()
    arguments = (price, strike, years, both[0], both[1], rate, spread, n)
    return Work("blackscholes", "256 Ki", (n // 256,), arguments, arguments, both, want, None)


def gather(rng: np.random.Generator) -> Work:
    rows, cols, entries = 4096, 256, 10000
    number, table, y = rng.integers(0, entries, rows).astype(np.int32), _normal(rng, entries, cols), _zeros(rows, cols)
    tnumber, ttable = torch.from_numpy(number), torch.from_numpy(table)
    want = table[number].astype(float)
    call = lambda: functional.embedding(tnumber, ttable)  # noqa: E731
    return Work("gather", "4096x256", (rows,), (number, table, y, cols), (number, table, y, rows, cols), y, want, call)


def maxpool(rng: np.random.Generator) -> Work:
    planes, w = 32, 256
    x, y = _normal(rng, planes, w, w), _zeros(planes, w // 2, w // 2)
    want = x.astype(float).reshape(planes, w // 2, 2, w // 2, 2).max((2, 4))
    tx = torch.from_numpy(x)
    grid = (w // 64, w // 16, planes)
    return Work("maxpool", "32x256x256", grid, (x, y, w, w), (x, y, planes, w, w), y, want, lambda: functional.max_pool2d(tx, 2))


def gelu_bias(rng: np.random.Generator) -> Work:
    rows, cols = 1024, 768
    x, bias, y = _normal(rng, rows, cols), _normal(rng, cols), _zeros(rows, cols)
    v = x.astype(float) + bias
    want = 0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v**3)))
    tx, tbias = torch.from_numpy(x), torch.from_numpy(bias)
    call = lambda: functional.gelu(tx + tbias, approximate="tanh")  # noqa: E731
    return Work("gelu_bias", "1024x768", (rows * cols // 256,), (x, bias, y, x.size, cols), (x, bias, y, rows, cols), y, want, call)


def cross_entropy(rng: np.random.Generator) -> Work:
    rows, cols = 512, 2048
    x, label, loss = _normal(rng, rows, cols), rng.integers(0, cols, rows), _zeros(rows)
    d = x.astype(float)
    want = np.log(np.exp(d).sum(1)) - d[np.arange(rows), label]
    tx, tlabel, label = torch.from_numpy(x), torch.from_numpy(label), label.astype(np.int32)
    call = lambda: functional.cross_entropy(tx, tlabel, reduction="none")  # noqa: E731
    return Work("cross_entropy", "512x2048", (rows,), (x, label, loss, cols), (x, label, loss, rows, cols), loss, want, call)


def spmv(rng: np.random.Generator) -> Work:
    rows = 1 << 14
    counts = rng.integers(0, 65, rows)
    start = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    column = np.concatenate([np.sort(rng.choice(rows, count, replace=False)) for count in counts]).astype(np.int32)
    value, x, y = _normal(rng, column.size), _normal(rng, rows), _zeros(rows)
    want = np.bincount(np.repeat(np.arange(rows), counts), value.astype(float) * x[column], rows)
    with warnings.catch_warnings(action="ignore"):  # that sparse tensors are in beta
        tstart, tcolumn, tvalue, tx = map(torch.from_numpy, (start, column, value, x))
        tmatrix = torch.sparse_csr_tensor(tstart, tcolumn, tvalue, (rows, rows))
    arguments = (start, column, value, x, y, rows)
    return Work("spmv", "16 Ki, 32 a row", (rows // 8,), arguments, arguments, y, want, lambda: tmatrix @ tx)


def bitonic(rng: np.random.Generator) -> Work:
    rows = 512
    x, y = _normal(rng, rows, 512), _zeros(rows, 512)
    tx = torch.from_numpy(x)
    return Work("bitonic", "512x512", (rows,), (x, y), (x, y, rows), y, np.sort(x, 1).astype(float), lambda: tx.sort(1))


def dot(rng: np.random.Generator) -> Work:
    x, y, out = _normal(rng, 1 << 21), _normal(rng, 1 << 21), _zeros(1)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)
    arguments = (x, y, out, x.size)
    return Work("dot", "2 Mi", (256,), arguments, arguments, out, (x.astype(float) @ y)[None], lambda: tx.dot(ty))
