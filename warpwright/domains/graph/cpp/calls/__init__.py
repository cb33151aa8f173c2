"""Aten calls as element-wise programs: one table of functions, one of calls that are several steps."""

from __future__ import annotations

from typing import Any

from warpwright.domains.graph.cpp import firsts, resampling, sums
from warpwright.domains.graph.cpp.calls import bags, elementwise, moves, reductions
from warpwright.domains.graph.cpp.calls.reading import BUILDERS as BUILDERS
from warpwright.domains.graph.cpp.calls.reading import Builder
from warpwright.domains.graph.ir import aten

_Groups = tuple[tuple[Builder, tuple[Any, ...]], ...]

_OF_ELEMENTS: _Groups = (
    (elementwise.unary, tuple(getattr(aten, name).default for name in elementwise.UNARY if hasattr(aten, name))),
    (elementwise.binary, (
        aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor,
        aten.div.Tensor, aten.div.Scalar, aten.rsub.Scalar, aten.maximum.default, aten.minimum.default, aten.max.other, aten.min.other,
    )),
    (elementwise.compare, tuple(getattr(getattr(aten, name), kind) for name in elementwise.COMPARE for kind in ("Scalar", "Tensor"))),
    (elementwise.where, (aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf)),
    (elementwise.masked_fill, (aten.masked_fill.Scalar,)),
    (elementwise.convert, (aten.to.dtype,)),
    (elementwise.logical_not, (aten.logical_not.default,)),
    (elementwise.clamp, (aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, aten.hardtanh.default)),
    (elementwise.power, (aten.pow.Tensor_Scalar,)),
    (elementwise.with_parameters, (aten.leaky_relu.default, aten.gelu.default, aten.elu.default, aten.softplus.default)),
)  # fmt: skip
_OTHERS: _Groups = (
    (reductions.reduction, (
        aten.sum.dim_IntList, aten.sum.default, aten.mean.dim, aten.mean.default, aten.amax.default, aten.amin.default, aten.max.default,
        aten.min.default, aten.logsumexp.default, aten.linalg_vector_norm.default,
        aten.var.correction, aten.var.dim, aten.var.default, aten.std.correction, aten.std.dim, aten.std.default,
    )),
    (reductions.first, firsts.INDICES),
    (reductions.softmax, (aten.softmax.int, aten.log_softmax.int)),
    (reductions.layer_norm, (aten.layer_norm.default, aten.rms_norm.default)),
    (reductions.group_norm, (aten.group_norm.default, aten.instance_norm.default)),
    (reductions.loss, (aten.mse_loss.default, aten.l1_loss.default, aten.smooth_l1_loss.default, aten.huber_loss.default, aten.kl_div.default)),
    (moves.cat, (aten.cat.default, aten.concat.default)),
    (moves.pad, (aten.pad.default, aten.constant_pad_nd.default)),
    (moves.roll, (aten.roll.default,)),
    (moves.gather, (aten.embedding.default, aten.index_select.default, aten.index.Tensor)),
    (moves.gather_along, (aten.gather.default,)),
    (resampling.nearest, (*resampling.NEAREST, *resampling.NEAREST_EXACT)),
    (resampling.linear, resampling.LINEAR),
    (resampling.cubic, (resampling.CUBIC,)),
    (sums.added, sums.SUMS),
    (bags.bag, (bags.BAG,)),
    (bags.segments, (bags.SEGMENTS, aten.segment_reduce.default)),
    (moves.view, (aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default, aten.view.default, aten.reshape.default)),
)  # fmt: skip
BUILDERS.update({op: build for build, ops in (*_OF_ELEMENTS, *_OTHERS) for op in ops})
VIEWS = _OTHERS[-1][1]
PARTS = (aten.cat.default, aten.concat.default, aten.pad.default, aten.constant_pad_nd.default)
"""Calls whose arguments are parts of their results."""
MOVES = (*PARTS, aten.roll.default, aten.embedding.default, aten.index_select.default, aten.index.Tensor, aten.gather.default)
"""Calls that only put elements in other places. Kernels for a GPU take them in."""
GPU_ONLY = frozenset((
    *MOVES, *resampling.RESAMPLED, *sums.SUMS, *bags.BAGS, *firsts.INDICES,
    *(getattr(aten, name).default for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "erfc")),
    *(getattr(aten, name).default for name in ("exp2", "log2", "log10", "round", "floor", "ceil", "trunc")),
))  # fmt: skip
ELEMENTWISE = frozenset(op for _, ops in _OF_ELEMENTS for op in ops) - GPU_ONLY
COPIES = (aten.clone.default, aten.contiguous.default, aten.detach.default, aten.alias.default, aten.to.dtype)
