"""Normalisations: results and running statistics stay right, in float64 exactly, in float32 as near as the original."""

from __future__ import annotations

import pytest
import torch
from exactness import assert_equal_in_double, assert_numerically_sound, captured, fixpoint, randomised
from shapes import Apply
from torch import nn

from warpwright.domains.graph.techniques import norm


class Shifted(nn.Module):
    """norm(x + c) with a parameter c of any shape."""

    def __init__(self, layer: nn.Module, size: tuple[int, ...]) -> None:
        super().__init__()
        self.layer = layer
        self.shift = nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x + self.shift)  # type: ignore[no-any-return]


_CANCEL = {
    "conv, LayerNorm over columns": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.LayerNorm(6)), (2, 3, 7, 8)),
    "conv_transpose, LayerNorm over rows and columns": (nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.LayerNorm([9, 10])), (2, 3, 7, 8)),
    "number, LayerNorm": (Shifted(nn.LayerNorm(8), ()), (2, 3, 8)),
    "rows, LayerNorm": (Shifted(nn.LayerNorm(8), (3, 1)), (2, 3, 8)),
    "conv, InstanceNorm": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True)), (2, 3, 7, 8)),
    "conv, GroupNorm of single channels": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(4, 4)), (2, 3, 7, 8)),
    "number, GroupNorm": (Shifted(nn.GroupNorm(2, 4), (1, 1, 1)), (2, 4, 5, 6)),
    "conv, BatchNorm": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 7, 8)),
    "linear, BatchNorm": (nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)), (9, 6)),
    "channels, BatchNorm": (Shifted(nn.BatchNorm2d(4), (4, 1, 1)), (2, 4, 5, 6)),
    "number, BatchNorm": (Shifted(nn.BatchNorm2d(32), (1,)), (2, 32, 5, 6)),
}


@pytest.mark.parametrize("name", sorted(_CANCEL))
def test_norm_cancels_shift(name: str) -> None:
    model, size = _CANCEL[name]
    randomised(model, 0)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, (norm.NORM_CANCELS_SHIFT,))
    assert fired == ["norm_cancels_shift"]
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    # on constant input a norm divides rounding errors by sqrt(eps), the original's as well as ours: no basis for a comparison
    assert_numerically_sound(before, after, size, model, ("normal", "scaled", "negated", "offset", "heavy"))


@pytest.mark.parametrize(
    ("model", "size"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4)), (2, 3, 7, 8)),
        (nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4)), (2, 6)),
        (Shifted(nn.LayerNorm(8), (8,)), (2, 8)),
        (Shifted(nn.GroupNorm(2, 4), (4, 1, 1)), (2, 4, 5, 6)),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval(), (2, 3, 7, 8)),
    ],
)
def test_what_does_not_cancel_stays(model: nn.Module, size: tuple[int, ...]) -> None:
    assert not list(norm.NORM_CANCELS_SHIFT.sites(captured(model, torch.zeros(size))))


@pytest.mark.parametrize("layer", [nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(3, 4, 3, stride=2)])
def test_evaluation_mode_is_affine(layer: nn.Module) -> None:
    model = randomised(nn.Sequential(layer, nn.BatchNorm2d(4)).eval(), 0)
    size = (2, 3, 7, 8)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, norm.TECHNIQUES)
    assert fired == ["batch_norm_is_affine"]
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model)


_POOLED = {
    "pool": nn.Sequential(nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1), nn.BatchNorm3d(3), nn.AvgPool3d(2)),
    "two pools": nn.Sequential(nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1), nn.BatchNorm3d(3), nn.AvgPool3d(2), nn.AvgPool3d(2)),
    "global": nn.Sequential(nn.ConvTranspose3d(2, 3, 3), Apply(lambda y: 2.0 * y), nn.BatchNorm3d(3), nn.AdaptiveAvgPool3d(1)),
    "no affine": nn.Sequential(nn.ConvTranspose3d(2, 3, 3), nn.BatchNorm3d(3, affine=False), Apply(lambda y: y.mean((2, 4)))),
    "untracked": nn.Sequential(nn.ConvTranspose3d(2, 3, 2, stride=2), nn.BatchNorm3d(3, track_running_stats=False), nn.AvgPool3d(2)),
}


@pytest.mark.parametrize("name", sorted(_POOLED))
def test_pool_before_batch_norm(name: str) -> None:
    from warpwright.domains.graph.techniques import REWRITES

    model = randomised(_POOLED[name], 0)
    size = (4, 2, 6, 7, 8)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, REWRITES)
    assert "pool_before_batch_norm" in fired
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model, ("normal", "scaled", "negated", "offset", "heavy", "spikes"))


def test_batch_norm_minus_mean() -> None:
    model = randomised(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), Apply(lambda z: z - z.mean((2, 3), keepdim=True))), 0)
    size = (4, 2, 9, 8)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, norm.TECHNIQUES)
    assert "batch_norm_minus_mean" in fired
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model, ("normal", "scaled", "negated", "offset", "heavy"))


@pytest.mark.parametrize("axes", [(2, 3), (1, 2, 3)])
def test_mean_before_group_norm(axes: tuple[int, ...]) -> None:
    model = randomised(nn.Sequential(nn.Conv2d(2, 6, 3), nn.GroupNorm(3, 6), Apply(lambda z: z.mean(axes))), 0)
    size = (4, 2, 9, 8)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, norm.TECHNIQUES)
    assert fired == ["mean_before_group_norm"]
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model, ("normal", "scaled", "negated", "offset", "heavy"))
