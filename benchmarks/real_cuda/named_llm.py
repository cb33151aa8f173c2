"""Cases of the kernels of llm.c's dev/cuda, known by their whole name: sizes are small and, where the launch allows it, no multiple of the block."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from benchmarks.real_cuda.families import Case, blocks, empty, random

F, H, WORDS = torch.float32, torch.bfloat16, torch.int32
CLOSE, ROUGH = 2e-5, 0.02
"""Tolerances of floats, and of bfloat16 answers."""


def softmax(threads: int, shared: int, rows_a_block: int = 1) -> Case:
    n, c = 21, 300
    x = random(F, n, c)
    return Case((blocks(n, rows_a_block),), (threads,), [empty(F, n, c), x, n, c], {0: x.double().softmax(1)}, CLOSE, "", shared)


def layer_norm(threads: int, rows_a_block: int, shared: int = 0, block: tuple[int, ...] = ()) -> Case:
    """Return a case of a whole layer norm, with its mean and reciprocal deviation."""
    n, c = 21, 320
    x, weight, bias = random(F, n, c), random(F, c), random(F, c)
    wide = x.double()
    mean, rstd = wide.mean(1), (wide.var(1, correction=0) + 1e-5).rsqrt()
    right = functional.layer_norm(wide, (c,), weight.double(), bias.double())
    arguments = [empty(F, n, c), empty(F, n), empty(F, n), x, weight, bias, n, c]
    return Case((blocks(n, rows_a_block),), block or (threads,), arguments, {0: right, 1: mean, 2: rstd}, 1e-4, "", shared)


def mean() -> Case:
    x = random(F, 21, 300, low=0)
    return Case((21,), (128,), [empty(F, 21), x, 21, 300, 128], {0: x.double().mean(1)}, CLOSE, "", 512)


def rstd() -> Case:
    x = random(F, 21, 300)
    m = x.mean(1)
    right = ((x.double() - m.double()[:, None]).square().mean(1) + 1e-5).rsqrt()
    return Case((21,), (128,), [empty(F, 21), x, m, 21, 300, 128], {0: right}, CLOSE, "", 512)


def normalised() -> Case:
    x, m, s, weight, bias = random(F, 16, 320), random(F, 16), random(F, 16, low=0.5), random(F, 320), random(F, 320)
    right = s.double()[:, None] * (x.double() - m.double()[:, None]) * weight.double() + bias.double()
    return Case((20,), (256,), [empty(F, 16, 320), x, m, s, weight, bias, 4, 4, 320], {0: right}, CLOSE)


def product() -> Case:
    bt, c, oc = 40, 36, 56
    x, weight, bias = random(F, bt, c), random(F, oc, c), random(F, oc)
    grid = blocks(bt, 16), blocks(oc, 16)
    right = x.double() @ weight.double().T + bias.double()
    return Case(grid, (16, 16), [empty(F, bt, oc), x, weight, bias, bt, c, oc], {0: right}, CLOSE)


def whole_tiles() -> Case:
    """Return a case of the product by blocks of 128 rows and columns, which asks for whole ones."""
    x, weight, bias = random(F, 256, 64), random(F, 128, 64), random(F, 128)
    right = x.double() @ weight.double().T + bias.double()
    return Case((2, 1), (16, 16), [empty(F, 256, 128), x, weight, bias, 64, 128], {0: right}, CLOSE)


def bias_added() -> Case:
    out, bias = random(F, 4, 10, 56), random(F, 56)
    return Case((3,), (128,), [out, bias, 4, 10, 56], {0: out.double() + bias.double()}, CLOSE)


def bias_back(kind: torch.dtype, grid: tuple[int, ...], block: tuple[int, ...], shared: int = 0, more: tuple[int, ...] = ()) -> Case:
    """Return a case of the sum of a gradient's rows, added to what is there."""
    b, t, oc = 2, 40, 64
    grad, before = random(kind, b, t, oc), random(F if more else kind, oc)
    right = before.double() + grad.double().sum((0, 1))
    return Case(grid, block, [before, grad, b, t, oc, *more], {0: right}, CLOSE if before.dtype == F else ROUGH, "", shared)


def bias_of_zero(grid: tuple[int, ...], block: tuple[int, ...], shared: int = 0) -> Case:
    """Return a case of the sum of a gradient's rows, in place of what is there."""
    grad = random(F, 2, 40, 64, low=0)
    return Case(grid, block, [empty(F, 64), grad, 2, 40, 64], {0: grad.double().sum((0, 1))}, CLOSE, "", shared)


def cross_entropy() -> Case:
    probs, targets = random(F, 21, 300).softmax(1), torch.randint(0, 300, (21,), dtype=WORDS)
    right = -probs.double().gather(1, targets.long()[:, None]).log().reshape(-1)
    return Case((1,), (32,), [empty(F, 21), probs, targets, 3, 7, 300], {0: right}, CLOSE)


def cross_entropy_back() -> Case:
    probs, targets, losses = random(F, 21, 300).softmax(1), torch.randint(0, 300, (21,), dtype=WORDS), random(F, 21)
    before = random(F, 21, 300)
    right = before.double() + (probs.double() - functional.one_hot(targets.long(), 300)) * losses.double()[:, None]
    return Case((blocks(6300, 256),), (256,), [before, losses, probs, targets, 3, 7, 300], {0: right}, CLOSE)


def encoder_back(threads: int, c: int) -> Case:
    b, t, v = 3, 7, 20
    tokens, grad = torch.randint(0, v, (b, t), dtype=WORDS), random(F, b, t, c)
    words, places = torch.zeros(v, c), torch.zeros(t, c)
    right = torch.zeros(v, c, dtype=torch.float64).index_add_(0, tokens.reshape(-1).long(), grad.double().reshape(-1, c))
    grid = blocks(b * t * c if threads > 64 else c, threads)
    return Case((grid,), (threads,), [words, places, grad, tokens, b, t, c], {0: right, 1: grad.double().sum(0)}, CLOSE)


def norm(kind: str) -> Case:
    x = random(F, 5000)
    right = x.double().square().sum().reshape(1)
    arguments = [torch.zeros(1), x, 5000]
    if kind == "partial":
        wide = functional.pad(x.double().square(), (0, 1144)).reshape(-1, 6, 256).sum((0, 2))
        return Case((6,), (256,), [empty(F, 6), x, 5000], {0: wide}, CLOSE, "float")
    return Case((6,), (256,), arguments, {0: right}, CLOSE, "float")


def aggregated() -> Case:
    x = random(F, 100, low=0)
    right = x.double().clone()
    right[0] = right.sum()
    return Case((1,), (128,), [x, 100], {0: right}, CLOSE)


def pairs(wide: int) -> Case:
    one, two = random(H, 4000), random(H, 4000)
    return Case((blocks(4000, 256 * wide),), (256,), [empty(H, 4000), one, two, 4000], {0: one.double() + two.double()}, ROUGH)


def gelu(wide: int) -> Case:
    x = random(H, 4000)
    right = functional.gelu(x.double(), approximate="tanh")
    return Case((blocks(4000, 256 * wide),), (256,), [empty(H, 4000), x, 4000], {0: right}, ROUGH)


def encoded(threads: int, wide: int) -> Case:
    b, t, c, v = 3, 7, 64, 20
    tokens, words, places = torch.randint(0, v, (b, t), dtype=WORDS), random(H, v, c), random(H, t, c)
    right = words.double()[tokens.long()] + places.double()
    grid = blocks(b * t * (c if threads > 64 else 1), threads * wide)
    return Case((grid,), (threads,), [empty(H, b, t, c), tokens, words, places, b, t, c], {0: right}, ROUGH)


def adam() -> Case:
    x, g, m, v = random(F, 1000), random(F, 1000), random(F, 1000), random(F, 1000, low=0)
    rate, one, two, first, second, eps, decay = 1e-2, 0.9, 0.99, 1 - 0.9**3, 1 - 0.99**3, 1e-8, 0.02
    new_m, new_v = m.double() * one + g.double() * (1 - one), v.double() * two + g.double().square() * (1 - two)
    right = x.double() - rate * (new_m / first / ((new_v / second).sqrt() + eps) + decay * x.double())
    arguments = [x, g, m, v, 1000, rate, one, two, first, second, eps, decay]
    return Case((4,), (256,), arguments, {0: right, 2: new_m, 3: new_v}, CLOSE)


LLM: dict[str, Callable[[], Case | list[Case]]] = {
    "softmax_forward_kernel1": lambda: softmax(32, 0, 32), "softmax_forward_kernel2": lambda: softmax(128, 512),
    "softmax_forward_kernel3": lambda: softmax(32, 0), "softmax_forward_kernel4": lambda: softmax(128, 16),
    "softmax_forward_online_kernel1": lambda: softmax(32, 0, 32), "softmax_forward_online_kernel2": lambda: softmax(128, 0, 4),
    "softmax_forward_kernel7": lambda: softmax(128, 32), "softmax_forward_online_kernel8": lambda: softmax(128, 0, 4),
    "layernorm_forward_kernel1": lambda: layer_norm(32, 32), "mean_kernel": mean, "rstd_kernel": rstd, "normalization_kernel": normalised,
    "layernorm_forward_kernel3": lambda: layer_norm(128, 4), "layernorm_forward_kernel4": lambda: layer_norm(128, 4),
    "layernorm_forward_kernel5": lambda: layer_norm(128, 1),
    "matmul_forward_kernel1": product, "matmul_forward_kernel4": whole_tiles, "add_bias": bias_added,
    "matmul_backward_bias_kernel_naive": lambda: bias_of_zero((2,), (32,)),
    "matmul_backward_bias_kernel_faster": lambda: bias_of_zero((64,), (128,), 512),
    "matmul_backward_bias_kernel1": lambda: bias_back(H, (64,), (128,), 512),
    "matmul_backward_bias_kernel2": lambda: bias_back(H, (16,), (128,)), "matmul_backward_bias_kernel3": lambda: bias_back(H, (64,), (128,)),
    "matmul_backward_bias_kernel4": lambda: bias_back(H, (2,), (128,), 512),
    "crossentropy_forward_kernel1": cross_entropy, "crossentropy_softmax_backward_kernel1": cross_entropy_back,
    "encoder_backward_kernel1": lambda: encoder_back(128, 50), "encoder_backward_kernel2": lambda: encoder_back(32, 50),
    "norm_kernel1": lambda: norm("whole"), "norm_kernel2": lambda: norm("whole"), "norm_kernel3": lambda: norm("whole"),
    "norm_kernel4": lambda: norm("partial"), "global_norm_aggregate_kernel": aggregated,
    "residual_forward_kernel1": lambda: pairs(1), "residual_forward_kernel2": lambda: pairs(8),
    "gelu_forward_kernel1": lambda: gelu(1), "gelu_forward_kernel2": lambda: gelu(8),
    "encoder_forward_kernel2": lambda: encoded(128, 1), "encoder_forward_kernel3": lambda: encoded(128, 8),
    "encoder_forward_kernel1": lambda: encoded(32, 1), "adamw_kernel1": adam, "adamw_kernel2": adam,
}  # fmt: skip
