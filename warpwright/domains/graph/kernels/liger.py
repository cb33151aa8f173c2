"""Calls that Liger-Kernel has Triton kernels for, made by these: norms, softmax, gated activations, losses. Needs the package liger-kernel.

    softmax(x, -1)  ->  LigerSoftmaxFunction.apply(x)            silu(a) * b  ->  LigerSiLUMulFunction.apply(a, b)

Read at release 0.8.5. A kernel of Liger's takes a row of up to 65,536 elements into one block; its cross entropy waits for the GPU twice a call.
"""

# mypy: ignore-errors
# --- generated programs hold what follows

import warnings

import torch

_LIGER = {}
"""`ops`: the package's module, or None where it is missing."""


def _liger_ops():
    if "ops" not in _LIGER:
        try:
            from liger_kernel import ops
        except ImportError as error:
            ops = None
            warnings.warn(f"torch makes the calls that are Liger's: {error} (pip install liger-kernel)", stacklevel=3)
        _LIGER["ops"] = ops
    return _LIGER["ops"]


def liger(name, x, *rest):
    """Return what the call `name` of LIGER gives: by Liger's kernel on a GPU, else by torch."""
    fits, made, own = LIGER[name]
    return made(_liger_ops(), x, *rest) if x.is_cuda and fits(x, *rest) and _liger_ops() is not None else own(x, *rest)


def _fits_a_block(x):
    return x.dim() > 0 and 0 < x.shape[-1] <= 65536 and x.numel() > 0 and x.dtype in (torch.float32, torch.bfloat16, torch.float16)


def _is_loss(x, target, reduction):
    return x.dim() == 2 and x.dtype is torch.float32 and x.numel() > 0 and not x.requires_grad and reduction in (1, 2)  # it writes gradients into x


def _eps(x, eps):
    return torch.finfo(x.dtype).eps if eps is None else eps


_MEAN_OR_SUM = {1: "mean", 2: "sum"}

LIGER = {
    "softmax": (
        lambda x, dim: x.dim() > 0 and dim % x.dim() == x.dim() - 1 and _fits_a_block(x),
        lambda ops, x, dim: ops.LigerSoftmaxFunction.apply(x),
        lambda x, dim: torch.softmax(x, dim),
    ),
    "layer_norm": (
        lambda x, sizes, weight, bias, eps: len(sizes) == 1 and weight is not None and bias is not None and _fits_a_block(x),
        lambda ops, x, sizes, weight, bias, eps: ops.LigerLayerNormFunction.apply(x, weight, bias, eps),
        lambda x, sizes, weight, bias, eps: torch.nn.functional.layer_norm(x, sizes, weight, bias, eps),
    ),
    "rms_norm": (
        lambda x, sizes, weight, eps: len(sizes) == 1 and _fits_a_block(x),
        lambda ops, x, sizes, weight, eps: ops.LigerRMSNormFunction.apply(x, weight, _eps(x, eps), 0.0, "gemma", False),  # all of it in float32
        lambda x, sizes, weight, eps: torch.nn.functional.rms_norm(x, sizes, weight, eps),
    ),
    "group_norm": (
        lambda x, groups, weight, bias, eps: x.dim() > 2 and weight is not None and bias is not None and x.dtype is torch.float32 and x.numel() > 0,
        lambda ops, x, groups, weight, bias, eps: ops.LigerGroupNormFunction.apply(x, weight, bias, x.shape[1], groups, eps),
        lambda x, groups, weight, bias, eps: torch.nn.functional.group_norm(x, groups, weight, bias, eps),
    ),
    "silu_mul": (
        lambda a, b: a.shape == b.shape and a.dtype == b.dtype and _fits_a_block(a),
        lambda ops, a, b: ops.LigerSiLUMulFunction.apply(a, b),
        lambda a, b: torch.nn.functional.silu(a) * b,
    ),
    "gelu_mul": (
        lambda a, b: a.shape == b.shape and a.dtype == b.dtype and _fits_a_block(a),
        lambda ops, a, b: ops.LigerGELUMulFunction.apply(a, b),
        lambda a, b: torch.nn.functional.gelu(a, approximate="tanh") * b,
    ),
    "cross_entropy": (
        lambda x, target, reduction, ignored, smoothing: _is_loss(x, target, reduction) and target.dim() == 1 and target.dtype is torch.int64,
        lambda ops, x, target, reduction, ignored, smoothing: ops.LigerCrossEntropyFunction.apply(
            x, target, None, ignored, 0.0, smoothing, _MEAN_OR_SUM[reduction]
        )[0],
        lambda x, target, reduction, ignored, smoothing: torch.nn.functional.cross_entropy(
            x, target, None, ignore_index=ignored, reduction=_MEAN_OR_SUM[reduction], label_smoothing=smoothing
        ),
    ),
    "kl_div": (
        lambda x, target, reduction, logarithms: _is_loss(x, target, reduction) and target.shape == x.shape and target.dtype is x.dtype,
        lambda ops, x, target, reduction, logarithms: ops.LigerKLDivLossFunction.apply(x, target, _MEAN_OR_SUM[reduction], logarithms),
        lambda x, target, reduction, logarithms: torch.nn.functional.kl_div(x, target, reduction=_MEAN_OR_SUM[reduction], log_target=logarithms),
    ),
}
"""Call -> does Liger take it, the call of its kernel, and torch's own. Reductions: 1 is the mean, 2 the sum, as in ATen."""
