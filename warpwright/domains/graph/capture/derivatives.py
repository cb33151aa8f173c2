"""Which derivatives (and losses) of torch's are written out in a recorded training step: as calls that kernels can take in.

torch's own formulas serve for most. Two are written here: the gradient of NLL, which torch scatters into a tensor of zeros as large as the logits,
and on a GPU the gradient of an embedding, for which torch sorts the indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._decomp import get_decompositions

from warpwright.domains.graph.ir import aten

_BACKWARDS = """
    threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward hardswish_backward hardsigmoid_backward hardtanh_backward
    leaky_relu_backward elu_backward softplus_backward mish_backward mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward huber_loss
    huber_loss_backward _softmax_backward_data _log_softmax_backward_data select_backward slice_backward masked_fill logit_backward rsub
    binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits native_dropout_backward addcmul addcdiv
"""
_NORMS = """
    _softmax _log_softmax native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward _fused_rms_norm
    _fused_rms_norm_backward native_batch_norm_backward
"""
"""Written out only where they may join a kernel: torch's own are fast alone."""

MEAN = 1
"""torch's number of the reduction `mean`."""
LARGEST_EXACT = 1 << 24
"""Classes that kernels tell apart, which compare them as float32."""


def written_out(target: str, norms: bool) -> Mapping[Any, Callable[..., Any]]:
    """Return operators with what they are replaced by on a target. `norms`: softmax and norms too, and what is read with them."""
    table = dict(get_decompositions([getattr(aten, name) for name in (_BACKWARDS + (_NORMS if norms else "")).split() if hasattr(aten, name)]))
    if norms:
        table |= {aten.nll_loss_backward.default: nll_loss_backward, aten.nll_loss2d_backward.default: nll_loss_backward}
    if target == "cuda":
        table[aten.embedding_dense_backward.default] = embedding_dense_backward
    return table


def nll_loss_backward(
    grad: torch.Tensor, x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignored: int, total: torch.Tensor
) -> Any:  # fmt: skip
    """Return dx: -weight[target] * grad (over the total weight for a mean) at each target's class, 0 elsewhere. The forward has tested targets."""
    if x.dim() < 2 or x.shape[1] >= LARGEST_EXACT:
        return NotImplemented
    each = -(grad / total if reduction == MEAN else grad)
    if weight is not None:
        each = each * weight[torch.where(target == ignored, 0, target)]
    each = torch.where(target == ignored, 0.0, each)
    classes = torch.arange(x.shape[1], device=x.device).view(-1, *[1] * (x.dim() - 2))
    return torch.where(classes == target.unsqueeze(1), each.unsqueeze(1), 0.0)


def embedding_dense_backward(grad: torch.Tensor, indices: torch.Tensor, rows: int, padding: int, by_frequency: bool) -> Any:
    """Return the table's gradient: rows of `grad` added where the indices say, as torch.compile has it; those of the padding are left out."""
    if by_frequency or not grad.is_floating_point() or not indices.dim():
        return NotImplemented
    added = torch.where((indices != padding).unsqueeze(-1), grad, 0.0) if padding >= 0 else grad
    return torch.zeros((rows, grad.shape[-1]), dtype=grad.dtype, device=grad.device).index_put((indices,), added, accumulate=True)
