"""Whole models whose work collapses: which rules fire, what is left, and that it is the same function.

Each is a small relative of a shape that benchmarks are made of; the expensive operator named must be gone when nothing more applies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from exactness import assert_equal_in_double, assert_numerically_sound, captured, fixpoint, randomised
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from warpwright.domains.graph.ir import GraphIR, run
from warpwright.domains.graph.techniques import REWRITES


class Chain(nn.Module):
    """Layers, parameters named p0, p1 ... of given shapes, and a function of (self, x)."""

    def __init__(self, forward: Callable[[Any, torch.Tensor], torch.Tensor], *parameters: tuple[int, ...], **layers: nn.Module) -> None:
        super().__init__()
        self.steps = forward
        for number, size in enumerate(parameters):
            self.register_parameter(f"p{number}", nn.Parameter(torch.randn(size)))
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.steps(self, x)


@dataclass(frozen=True)
class Collapse:
    """A model, its input, the rules that must fire, operators that must be gone, and by how much the operations must fall at this size."""

    model: nn.Module
    size: tuple[int, ...]
    rules: tuple[str, ...]
    gone: tuple[str, ...]
    fewer: float


def _pooled_features(m: Any, x: torch.Tensor) -> torch.Tensor:
    return (F.gelu(F.avg_pool1d(m.f(x).unsqueeze(1), 8).squeeze(1)) * 2.0).max(1).values


CASES = {
    "product, sum": Collapse(
        Chain(lambda m, x: (x @ m.p0.T / 2).sum(1, keepdim=True) * 1.5, (64, 48)), (16, 48), ("reduce_columns",), ("numpy_T",), 8
    ),
    "linear, sum, reductions of one element": Collapse(
        Chain(lambda m, x: m.f(x).sum(1, keepdim=True).max(1, keepdim=True)[0].mean(1, keepdim=True).logsumexp(1, keepdim=True), f=nn.Linear(48, 64)),
        (16, 48), ("reduce_columns", "size_one_reduction"), ("linear", "logsumexp", "max"), 8,
    ),
    "linear, difference, mean, residual": Collapse(
        Chain(lambda m, x: F.gelu((m.f(x) - m.p0).mean(1, keepdim=True).logsumexp(1, keepdim=True)) + x, (64,), f=nn.Linear(48, 64)),
        (16, 48), ("reduce_columns", "commute_reduction"), ("linear", "logsumexp"), 8,
    ),
    "linear, pool of features, maximum": Collapse(
        Chain(_pooled_features, f=nn.Linear(48, 64)), (16, 48), ("pool_features", "extremum_first"), ("avg_pool1d",), 4
    ),
    "transposed, global mean": Collapse(
        Chain(lambda m, x: (m.c(x).mean((2, 3), keepdim=True) + m.p0).logsumexp(1, keepdim=True).sum((2, 3)) * 10.0, (6, 1, 1),
              c=nn.ConvTranspose2d(4, 6, 3)),
        (3, 4, 12, 10), ("reduce_convolution",), ("conv_transpose2d",), 50,
    ),
    "strided transposed, scale, global mean twice": Collapse(
        Chain(lambda m, x: (m.c(x) * 0.5).mean((2, 3), keepdim=True).mean((2, 3), keepdim=True),
              c=nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)),
        (3, 4, 12, 10), ("reduce_convolution", "commute_reduction", "size_one_reduction"), ("conv_transpose2d",), 50,
    ),
    "transposed 3D, mean over depth, softmax": Collapse(
        Chain(lambda m, x: torch.tanh(torch.softmax(m.c(x).mean(2, keepdim=True) + m.p0, 1)) * 2.0, (1, 6, 1, 1, 1),
              c=nn.ConvTranspose3d(4, 6, 3, padding=1)),
        (2, 4, 12, 6, 7), ("reduce_convolution", "flip_transposed"), ("conv_transpose3d", "conv_transpose2d"), 3,
    ),
    "strided transposed 3D, scale, pool, bias, scale": Collapse(
        Chain(lambda m, x: (F.avg_pool3d(m.c(x) * m.p0, 2) + m.p1) * m.p2, (), (5, 1, 1, 1), (), c=nn.ConvTranspose3d(3, 5, 3, stride=2, padding=1)),
        (2, 3, 6, 6, 7), ("merge_convolution_pool", "commute_reduction"), ("conv_transpose3d", "avg_pool3d"), 3,
    ),
    "convolution, pool, sigmoid, sum": Collapse(
        Chain(lambda m, x: torch.sigmoid(F.avg_pool2d(m.c(x), 4)).sum((1, 2, 3)), c=nn.Conv2d(3, 5, 3)),
        (2, 3, 22, 18), ("merge_convolution_pool",), ("avg_pool2d",), 3,
    ),
    "transposed, number, LayerNorm over columns, pool": Collapse(
        Chain(lambda m, x: F.gelu(F.avg_pool3d(m.n(m.c(x) + m.p0), 2)), (),
              c=nn.ConvTranspose3d(3, 4, 3, stride=2, padding=1, output_padding=1), n=nn.LayerNorm(8)),
        (2, 3, 4, 4, 4), ("norm_cancels_shift", "transposed_in_phases"), ("conv_transpose3d", "add"), 0.3,
    ),
    "transposed, LayerNorm over columns": Collapse(
        Chain(lambda m, x: F.gelu(m.n(m.c(x))) * 1.0, c=nn.ConvTranspose3d(3, 4, 4, stride=2, padding=1), n=nn.LayerNorm(8)),
        (2, 3, 4, 4, 4), ("norm_cancels_shift", "transposed_in_phases"), ("conv_transpose3d", "mul"), 0.4,
    ),
    "strided transposed, BatchNorm, pool, pool": Collapse(
        Chain(lambda m, x: F.avg_pool3d(F.avg_pool3d(m.n(m.c(x)), 2), 2),
              c=nn.ConvTranspose3d(3, 4, 3, stride=2, padding=1), n=nn.BatchNorm3d(4)),
        (3, 3, 5, 5, 6), ("pool_before_batch_norm", "merge_pools", "merge_convolution_pool", "statistics_before_interleaving"),
        ("conv_transpose3d", "batch_norm", "avg_pool3d"), 0.3,
    ),
    "transposed, scale, BatchNorm, global mean": Collapse(
        Chain(lambda m, x: F.adaptive_avg_pool3d(m.n(m.c(x) * 2.0), 1), c=nn.ConvTranspose3d(4, 8, 5), n=nn.BatchNorm3d(8)),
        (8, 4, 6, 8, 8), ("pool_before_batch_norm", "reduce_convolution", "variance_by_parseval"), ("conv_transpose3d", "conv3d", "batch_norm"), 4,
    ),
    "strided transposed, scale, maximum, global mean": Collapse(
        Chain(lambda m, x: F.adaptive_avg_pool3d(F.max_pool3d(m.c(x) * 0.5, 2), 1).clamp(0, 1), c=nn.ConvTranspose3d(3, 5, 3, stride=2, padding=1)),
        (2, 3, 4, 5, 6), ("extremum_first", "pool_before_interleaving", "bias_after_extremum"), ("conv_transpose3d", "max_pool3d"), 0.3,
    ),
    "strided transposed, maxima, sum": Collapse(
        Chain(lambda m, x: F.max_pool3d(F.max_pool3d(m.c(x), 2), 3).sum(1, keepdim=True), c=nn.ConvTranspose3d(3, 5, 5, stride=2, padding=2)),
        (2, 3, 6, 7, 6), ("merge_pools", "pool_before_interleaving"), ("conv_transpose3d",), 0.3,
    ),
    "strided transposed, logsumexp": Collapse(
        Chain(lambda m, x: m.c(x).logsumexp(1, keepdim=True), c=nn.ConvTranspose3d(3, 5, 3, stride=2, padding=1)),
        (2, 3, 4, 5, 6), ("channels_before_interleaving",), ("conv_transpose3d",), 0.3,
    ),
    "convolution, GroupNorm, mean of everything": Collapse(
        Chain(lambda m, x: m.n(m.c(x)).mean((1, 2, 3, 4)), c=nn.Conv3d(3, 6, 3), n=nn.GroupNorm(3, 6)),
        (2, 3, 6, 6, 7), ("mean_before_group_norm",), ("group_norm",), 0.99,
    ),
}  # fmt: skip


def _flops(ir: GraphIR, size: tuple[int, ...], state: dict[str, torch.Tensor]) -> int:
    """Count the operations of matrix products and convolutions, transforms aside."""
    with FlopCounterMode(display=False) as counter:
        run(ir, [torch.zeros(size)], {name: tensor.clone() for name, tensor in state.items()})
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", sorted(CASES))
def test_collapse(name: str) -> None:
    case = CASES[name]
    model = randomised(case.model, 0)
    before = captured(model, torch.zeros(case.size))
    after, fired = fixpoint(before, REWRITES)
    assert set(case.rules) <= set(fired)
    left = {str(node.target).split(".")[1] for node in after.graph.nodes if node.op == "call_function" and str(node.target).startswith("aten.")}
    assert not left & set(case.gone)
    assert_equal_in_double(before, after, [torch.randn(case.size)], model)
    # heavy tails: one value outweighs the rest, so that the mean over 12 layers no longer averages the original's error away at this size
    kinds = ("normal", "scaled", "negated", "spikes") if "depth" in name else ("normal", "scaled", "negated", "heavy", "spikes")
    assert_numerically_sound(before, after, case.size, model, kinds)
    state = {n: t.detach() for n, t in model.state_dict().items()}
    assert _flops(before, case.size, state) >= case.fewer * _flops(after, case.size, state)
