"""Calls that QuACK has CuTe kernels for, made by these: softmax, norms, cross entropy, the largest of short rows. Needs the package quack-kernels.

    softmax(x, -1)  ->  quack.softmax(x)            topk(x, k)  ->  quack.topk.topk(x, k)

Read at release 0.6.5. A kernel is compiled at the first call of each type and length of row; from Hopper on clusters of blocks share long rows.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.others.calls import REDUCTIONS, eps_of, is_row, library_call  # noqa: I001

# --- generated programs hold what follows

import importlib

import torch


def quack(call, x, *rest):
    return library_call(QUACK, "quack", "quack-kernels", call, x, *rest)


def _of_quack(file):
    return importlib.import_module(f"quack.{file}")


def _rows(x):
    return x.reshape(-1, x.shape[-1]).contiguous()


def _quack_layer_norm(library, x, sizes, weight, bias, eps):
    rows = _rows(x)
    return _of_quack("rmsnorm").layernorm_fwd(rows, weight.float(), None if bias is None else bias.float(), eps).view(x.shape)


def _quack_top_k(library, x, k):
    values, indices = _of_quack("topk").topk(_rows(x), k)
    sizes = (*x.shape[:-1], k)
    return torch.return_types.topk((values.view(sizes), indices.long().view(sizes)))


def _is_quack_row(x):
    """A row of whole vectors of 16 bytes, as its kernels copy them."""
    return is_row(x, 262144) and x.shape[-1] * x.element_size() % 16 == 0


def _is_power_of_two(n):
    return n > 0 and n & (n - 1) == 0


QUACK = {
    "softmax": (
        lambda x, dim: x.dim() > 0 and dim % x.dim() == x.dim() - 1 and _is_quack_row(x),
        lambda library, x, dim: library.softmax(_rows(x)).view(x.shape),
    ),
    "layer_norm": (
        lambda x, sizes, weight, bias, eps: len(sizes) == 1 and weight is not None and _is_quack_row(x),
        _quack_layer_norm,
    ),
    "rms_norm": (
        lambda x, sizes, weight, eps: len(sizes) == 1 and _is_quack_row(x),
        lambda library, x, sizes, weight, eps: library.rmsnorm(x, weight, eps=eps_of(x, eps)),
    ),
    "cross_entropy": (
        lambda x, target, reduction, ignored, smoothing: (
            x.dim() == 2 and target.dim() == 1 and target.dtype is torch.int64 and smoothing == 0 and x.dtype is torch.float32 and _is_quack_row(x)
        ),
        lambda library, x, target, reduction, ignored, smoothing: library.cross_entropy(
            x, target, ignore_index=ignored, reduction=REDUCTIONS[reduction]
        ),
    ),
    "top_k": (
        lambda x, k: is_row(x, 4096) and x.shape[-1] >= 64 and all(map(_is_power_of_two, (x.shape[-1], k))) and k <= min(128, x.shape[-1]),
        _quack_top_k,
    ),
}
"""Call of OWN -> does QuACK take it, and the call of its kernel."""
