"""Cases of kernels that are known by their whole name, as their parameters follow no common layout: those of ggml's CUDA folder, llm.c, cuda-samples.

Those of ggml are here, in named_layout.py, named_layers.py, named_sequences.py, named_attention.py and, with blocks of bytes, named_quantised.py; the
others in named_llm.py and named_samples.py.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from benchmarks.real_cuda.families import Case, blocks, empty, random
from benchmarks.real_cuda.named_attention import ATTENTION
from benchmarks.real_cuda.named_layers import LAYERS
from benchmarks.real_cuda.named_layout import LAYOUT
from benchmarks.real_cuda.named_llm import LLM
from benchmarks.real_cuda.named_quantised import QUANTISED
from benchmarks.real_cuda.named_samples import SAMPLES
from benchmarks.real_cuda.named_sequences import SEQUENCES

F = torch.float32
EXACT, CLOSE = 0.0, 2e-5
WORDS = torch.int32


def flat(n: int, arguments: list[object], wanted: dict[int, torch.Tensor], tolerance: float = CLOSE, instance: str = "") -> Case:
    """Return a case of one thread an element."""
    return Case((blocks(n, 256),), (256,), arguments, wanted, tolerance, instance)


def scale() -> Case:
    x = random(F, 1000)
    return flat(1000, [x, empty(F, 1000), 1.5, 0.25, 1000], {1: x.double() * 1.5 + 0.25})


def clamp() -> Case:
    x = random(F, 1000)
    return flat(1000, [x, empty(F, 1000), -0.5, 0.75, 1000], {1: x.double().clamp(-0.5, 0.75)}, EXACT, "float")


def arange() -> Case:
    return flat(777, [empty(F, 777), 777, 2.0, 0.5], {0: 2 + 0.5 * torch.arange(777, dtype=torch.float64)})


def argmax() -> Case:
    x = random(F, 24, 500)
    return Case((24,), (128,), [x, empty(WORDS, 24), 500], {1: x.argmax(1).double()}, EXACT)


def count_equal() -> Case:
    x, y = torch.randint(0, 4, (1000,), dtype=WORDS), torch.randint(0, 4, (1000,), dtype=WORDS)
    return Case((8,), (32,), [x, y, torch.zeros(1, dtype=torch.int64), 128, 1000], {2: (x == y).sum().double().reshape(1)}, EXACT, "int")


def softcap() -> Case:
    x = random(F, 1000)
    return flat(1000, [x, empty(F, 1000), 0.5, 3.0, 1000], {1: (x.double() * 0.5).tanh() * 3})


def normed(kind: str) -> Case:
    x, eps = random(F, 12, 300), 1e-5
    wide = x.double()
    right = functional.layer_norm(wide, (300,), eps=eps) if kind == "norm" else wide * (wide.square().sum(1, keepdim=True)).rsqrt()
    return Case((12,), (256,), [x, empty(F, 12, 300), 300, 300, 3600, 3600, eps], {1: right}, 1e-4, "256", 1024)


def group_norm() -> Case:
    x, eps = random(F, 12, 300), 1e-5
    return Case((12,), (256,), [x, empty(F, 12, 300), 300, 3600, eps], {1: functional.layer_norm(x.double(), (300,), eps=eps)}, 1e-4, "256", 1024)


def rms_norm_back() -> Case:
    grad, x, eps = random(F, 12, 300), random(F, 12, 300), 1e-5
    wide = x.double().requires_grad_()
    (wide * (wide.square().mean(1, keepdim=True) + eps).rsqrt()).backward(grad.double())
    return Case((12,), (32,), [grad, x, empty(F, 12, 300), 300, eps], {2: wide.grad}, 1e-4, "32")  # type: ignore[dict-item]


def softmax_back() -> Case:
    grad, y = random(F, 12, 300), random(F, 12, 300).softmax(1)
    right = 0.5 * (grad.double() - (grad.double() * y.double()).sum(1, keepdim=True)) * y.double()
    return Case((12,), (32,), [grad, y, empty(F, 12, 300), 300, 0.5], {2: right}, 1e-4)


def cross_entropy() -> Case:
    logits, labels = random(F, 12, 300), random(F, 12, 300).softmax(1)
    right = -(logits.double().log_softmax(1) * labels.double()).sum(1) / 12
    return Case((12,), (32,), [logits, labels, empty(F, 12), 300, 12], {2: right}, 1e-4, "true", 1200)


def cross_entropy_back() -> Case:
    grad, logits, labels = random(F, 1), random(F, 12, 300), random(F, 12, 300).softmax(1)
    right = (logits.double().softmax(1) - labels.double()) * grad.double() / 12
    return Case((12,), (32,), [grad, logits, labels, empty(F, 12, 300), 300], {3: right}, 1e-4, "false")


def timesteps() -> Case:
    steps, dim = random(F, 10, low=0, high=50), 64
    frequencies = torch.exp(-torch.log(torch.tensor(10000.0, dtype=torch.float64)) * torch.arange(32) / 32)
    angles = steps.double()[:, None] * frequencies
    right = torch.cat([angles.cos(), angles.sin()], 1)
    return Case((1, 10), (256,), [steps, empty(F, 10, dim), 4 * dim, dim, 10000], {1: right}, 1e-4)


def fill() -> Case:
    return flat(1000, [empty(F, 1000), 1000, 2.5], {0: torch.full((1000,), 2.5, dtype=torch.float64)}, EXACT, "float")


def roll() -> Case:
    x = random(F, 2, 3, 5, 33)
    right = x.double().roll((1, -1, 2, 7), (0, 1, 2, 3))
    return flat(x.numel(), [x, empty(F, *x.shape), 33, 5, 3, 2, 7, 2, -1, 1], {1: right}, EXACT)


def sgd() -> Case:
    x, g, pars = random(F, 1000), random(F, 1000), torch.tensor([0.1, 0.01])
    return flat(1000, [x, g, pars, 1000], {0: x.double() * (1 - 0.1 * 0.01) - 0.1 * g.double()})


def adamw() -> Case:
    x, g, m, v = random(F, 1000), random(F, 1000), random(F, 1000), random(F, 1000, low=0)
    alpha, beta1, beta2, eps, wd, h1, h2 = 0.01, 0.9, 0.99, 1e-8, 0.02, 1.3, 1.1
    new_m, new_v = m.double() * beta1 + g.double() * (1 - beta1), v.double() * beta2 + g.double().square() * (1 - beta2)
    right = x.double() * (1 - alpha * wd) - alpha * new_m * h1 / ((new_v * h2).sqrt() + eps)
    return flat(1000, [x, g, m, v, torch.tensor([alpha, beta1, beta2, eps, wd, h1, h2]), 1000], {0: right, 2: new_m, 3: new_v})


def silu_back() -> Case:
    grad, x = random(F, 1000), random(F, 1000)
    wide = x.double().requires_grad_()
    functional.silu(wide).backward(grad.double())
    return flat(1000, [grad, x, empty(F, 1000), 1000], {2: wide.grad}, CLOSE, "float")  # type: ignore[dict-item]


def leaky_relu() -> Case:
    x = random(F, 1000)
    return flat(1000, [x, empty(F, 1000), 1000, 0.1], {1: functional.leaky_relu(x.double(), 0.1)}, CLOSE, "float")


def concat() -> Case:
    x, y = random(F, 4, 5, 30), random(F, 4, 5, 21)
    arguments = [x, y, empty(F, 4, 5, 51), 30, 5, 4, 51, 5, 4]
    return Case((4,), (256,), arguments, {2: torch.cat([x, y], 2).double()}, EXACT, "float, 0")


def diagonal() -> Case:
    x = random(F, 6, 40)
    return flat(6 * 1600, [empty(F, 6, 40, 40), x, 40, 40, 6, 1, 9600], {0: torch.diag_embed(x.double())}, EXACT, "float")


def rows_summed() -> Case:
    x = random(F, 12, 300, low=0)
    return Case((12,), (128,), [x, empty(F, 12), 300], {1: x.double().mean(1)}, 1e-4, "true")


def upscale() -> Case:
    x = random(F, 2, 3, 8, 10)
    right = x.double().repeat_interleave(2, 2).repeat_interleave(3, 3)
    arguments = [x, empty(F, *right.shape), 4, 40, 320, 960, 30, 16, 3, 2, 3.0, 2.0, 1.0, 1.0]
    return flat(right.numel(), arguments, {1: right}, EXACT)


def accumulate() -> Case:
    x, y = random(F, 8, 40), random(F, 3, 10)
    right = x.double().clone()
    right[2:5, 5:15] += y.double()
    return flat(320, [x, y, empty(F, 8, 40), 320, 10, 3, 1, 1, 40, 320, 320, 85], {2: right})


def transposed_convolution() -> Case:
    x, kernel = random(F, 6, 25), random(F, 6, 4, 7)
    right = functional.conv_transpose1d(x.double()[None], kernel.double(), stride=2)[0]
    n = right.shape[1]
    arguments = [2, 0, 1, right.numel(), 7, 4, 6, 1, 25, 6, 1, 1, n, 4, 1, 1, kernel, x, empty(F, 4, n)]
    return flat(right.numel(), arguments, {18: right})


def diag_mask() -> Case:
    x = random(F, 24, 40)
    rows, columns = torch.arange(24)[:, None], torch.arange(40)
    right = x.double() - (columns > 3 + rows % 12).double() * torch.finfo(F).max
    return Case((24, 2), (1, 32), [x, empty(F, 24, 40), 40, 12, 3], {1: right}, 1e-7)


NAMED: dict[str, Callable[[], Case | list[Case]]] = LAYERS | LAYOUT | QUANTISED | ATTENTION | SEQUENCES | LLM | SAMPLES | {
    "scale_f32": scale, "op_clamp_kernel": clamp, "arange_f32": arange, "argmax_f32": argmax, "count_equal": count_equal, "softcap_f32": softcap,
    "norm_f32": lambda: normed("norm"), "l2_norm_f32": lambda: normed("l2"), "group_norm_f32": group_norm, "rms_norm_back_f32": rms_norm_back,
    "soft_max_back_f32": softmax_back, "cross_entropy_loss_f32": cross_entropy, "cross_entropy_loss_back_f32": cross_entropy_back,
    "timestep_embedding_f32": timesteps, "fill_kernel": fill, "roll_f32_cuda": roll, "opt_step_sgd_f32": sgd, "opt_step_adamw_f32": adamw,
    "silu_back_kernel": silu_back, "leaky_relu_kernel": leaky_relu, "concat_cont": concat, "diag_kernel": diagonal, "reduce_rows_f32": rows_summed,
    "upscale_f32": upscale, "acc_f32": accumulate, "conv_transpose_1d_kernel": transposed_convolution, "diag_mask_inf_f32": diag_mask,
}  # fmt: skip
