"""Other forms of a convolution, and the variance by Parseval's theorem: exact in float64, sound in float32."""

from __future__ import annotations

import random

import pytest
import torch
from exactness import assert_equal_in_double, assert_numerically_sound, captured, fixpoint, randomised
from shapes import Apply, convolution
from torch import nn

from warpwright.domains.graph.techniques import norm
from warpwright.domains.graph.techniques.convolutions import conv_reduce, forms, fourier


@pytest.mark.parametrize(
    ("conv", "size", "name"),
    [
        (nn.Conv3d(2, 20, 2), (2, 2, 4, 5, 6), "convolution_as_matmul"),
        (nn.Conv2d(2, 20, 3, stride=2, padding=1, bias=False), (2, 2, 9, 8), "convolution_as_matmul"),
        (nn.Conv2d(5, 4, 1), (2, 5, 6, 7), "convolution_as_matmul"),
        (nn.Conv3d(3, 4, 3, stride=(2, 1, 2), padding=(1, 0, 2)), (2, 3, 7, 6, 8), "conv3d_in_slices"),
        (nn.Conv3d(3, 4, (3, 2, 1), stride=(2, 1, 1), padding=(1, 1, 0), dilation=(1, 2, 1)), (2, 3, 7, 6, 8), "flat_conv3d"),
    ],
)
def test_forms(conv: nn.Module, size: tuple[int, ...], name: str) -> None:
    model = randomised(conv, 0)
    before = captured(model, torch.zeros(size))
    [technique] = [t for t in forms.TECHNIQUES if t.name == name]
    [action] = technique.sites(before)
    after = technique.apply(before, action)
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model)


def test_patches_that_overlap_much_are_not_built() -> None:
    model = randomised(nn.Conv2d(5, 4, 3), 0)
    assert not [action for technique in forms.TECHNIQUES for action in technique.sites(captured(model, torch.zeros(2, 5, 23, 14)))]


@pytest.mark.parametrize("seed", range(8))
def test_any_convolution_that_matches(seed: int) -> None:
    conv, x = convolution(random.Random(seed), transposed=False, d=2 + seed % 2)
    model = randomised(conv, seed)
    before = captured(model, x)
    for technique in forms.TECHNIQUES:
        for action in technique.sites(before):
            assert_equal_in_double(before, technique.apply(before, action), [x], model)


@pytest.mark.parametrize("size", [(3, 4, 4, 6, 3), (3, 4, 4, 5, 4), (2, 4, 8, 11)])
def test_variance_by_parseval(size: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_WORTH_IT", 0.0)
    conv = nn.ConvTranspose3d(4, 5, 3) if len(size) == 5 else nn.ConvTranspose2d(4, 5, (3, 5))
    axes = [0, *range(2, len(size))]
    model = randomised(nn.Sequential(conv, Apply(lambda y: torch.var_mean(y, axes, correction=0))), 0)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, fourier.TECHNIQUES)
    assert fired == ["variance_by_parseval"]
    assert not any("conv" in str(n.target) for n in after.graph.nodes)
    assert_equal_in_double(before, after, [torch.randn(size)], model)


def test_float32_error_behind_a_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_WORTH_IT", 0.0)
    model = randomised(nn.Sequential(nn.ConvTranspose3d(8, 16, 3), nn.BatchNorm3d(16), nn.AdaptiveAvgPool3d(1)), 0)
    size = (4, 8, 10, 8, 8)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, (*norm.TECHNIQUES, *conv_reduce.TECHNIQUES, *fourier.TECHNIQUES))
    assert "variance_by_parseval" in fired
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model)
