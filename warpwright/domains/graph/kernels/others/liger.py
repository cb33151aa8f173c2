"""Calls that Liger-Kernel has Triton kernels for, made by these: norms, softmax, gated activations, losses. Needs the package liger-kernel.

    softmax(x, -1)  ->  LigerSoftmaxFunction.apply(x)            silu(a) * b  ->  LigerSiLUMulFunction.apply(a, b)

Read at release 0.8.5. A kernel of Liger's takes a row of up to 65,536 elements into one block; its cross entropy waits for the GPU twice a call.
"""

# mypy: ignore-errors
import torch

from warpwright.domains.graph.kernels.others.calls import REDUCTIONS, eps_of, is_row, library_call

# --- generated programs hold what follows


def liger(call, x, *rest):
    return library_call(LIGER, "liger_kernel.ops", "liger-kernel", call, x, *rest)


def _is_loss(x, target, reduction):
    return x.dim() == 2 and x.dtype is torch.float32 and x.numel() > 0 and not x.requires_grad and reduction in (1, 2)  # it writes gradients into x


LIGER = {
    "softmax": (
        lambda x, dim: x.dim() > 0 and dim % x.dim() == x.dim() - 1 and is_row(x),
        lambda ops, x, dim: ops.LigerSoftmaxFunction.apply(x),
    ),
    "layer_norm": (
        lambda x, sizes, weight, bias, eps: len(sizes) == 1 and weight is not None and bias is not None and is_row(x),
        lambda ops, x, sizes, weight, bias, eps: ops.LigerLayerNormFunction.apply(x, weight, bias, eps),
    ),
    "rms_norm": (
        lambda x, sizes, weight, eps: len(sizes) == 1 and is_row(x),
        lambda ops, x, sizes, weight, eps: ops.LigerRMSNormFunction.apply(x, weight, eps_of(x, eps), 0.0, "gemma", False),  # all of it in float32
    ),
    "group_norm": (
        lambda x, groups, weight, bias, eps: x.dim() > 2 and weight is not None and bias is not None and x.dtype is torch.float32 and x.numel() > 0,
        lambda ops, x, groups, weight, bias, eps: ops.LigerGroupNormFunction.apply(x, weight, bias, x.shape[1], groups, eps),
    ),
    "silu_mul": (
        lambda a, b: a.shape == b.shape and a.dtype == b.dtype and is_row(a),
        lambda ops, a, b: ops.LigerSiLUMulFunction.apply(a, b),
    ),
    "gelu_mul": (
        lambda a, b: a.shape == b.shape and a.dtype == b.dtype and is_row(a),
        lambda ops, a, b: ops.LigerGELUMulFunction.apply(a, b),
    ),
    "cross_entropy": (
        lambda x, target, reduction, ignored, smoothing: _is_loss(x, target, reduction) and target.dim() == 1 and target.dtype is torch.int64,
        lambda ops, x, target, reduction, ignored, smoothing: ops.LigerCrossEntropyFunction.apply(
            x, target, None, ignored, 0.0, smoothing, REDUCTIONS[reduction]
        )[0],
    ),
    "kl_div": (
        lambda x, target, reduction, logarithms: _is_loss(x, target, reduction) and target.shape == x.shape and target.dtype is x.dtype,
        lambda ops, x, target, reduction, logarithms: ops.LigerKLDivLossFunction.apply(x, target, REDUCTIONS[reduction], logarithms),
    ),
}
"""Call of OWN -> does Liger take it, and the call of its kernel."""
