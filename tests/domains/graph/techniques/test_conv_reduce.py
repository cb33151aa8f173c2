"""Reductions of convolutions: exact for random shapes in float64, and sound in float32."""

from __future__ import annotations

import random

import pytest
import torch
from exactness import assert_equal_in_double, assert_numerically_sound, captured, fixpoint, randomised
from shapes import Apply, convolution
from torch import nn

from warpwright.domains.graph.techniques.convolutions import conv_reduce


@pytest.mark.parametrize("seed", range(24))
def test_any_reduction_of_any_convolution(seed: int) -> None:
    rng = random.Random(seed)
    d = 1 + seed % 3
    conv, x = convolution(rng, transposed=seed % 2 == 0, d=d)
    axes = sorted(rng.sample(range(2, d + 2), rng.randint(1, d))) + ([1] if seed % 5 == 0 else [])
    keepdim, mean = rng.random() < 0.5, rng.random() < 0.5
    model = randomised(nn.Sequential(conv, Apply(lambda y: (y.mean if mean else y.sum)(axes, keepdim=keepdim))), seed)
    before = captured(model, x)
    after, fired = fixpoint(before, conv_reduce.TECHNIQUES)
    assert "reduce_convolution" in fired
    assert_equal_in_double(before, after, [x], model)


def test_sum_over_channels() -> None:
    for transposed in (False, True):
        conv = (nn.ConvTranspose2d if transposed else nn.Conv2d)(3, 5, 3, stride=2)
        model = randomised(nn.Sequential(conv, Apply(lambda y: y.sum(1))), 1)
        x = torch.randn(2, 3, 7, 8)
        before = captured(model, x)
        after, fired = fixpoint(before, conv_reduce.TECHNIQUES)
        assert fired == ["reduce_channels"]
        assert_equal_in_double(before, after, [x], model)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_float32_error_stays_near_the_original(stride: int, padding: int) -> None:
    conv = nn.ConvTranspose2d(8, 6, 3, stride=stride, padding=padding, output_padding=stride - 1)
    model = randomised(nn.Sequential(conv, nn.AdaptiveAvgPool2d(1)), 0)
    size = (4, 8, 24, 20)
    before = captured(model, torch.zeros(size))
    after, _ = fixpoint(before, conv_reduce.TECHNIQUES)
    assert_numerically_sound(before, after, size, model)


def test_depth_mean_becomes_a_convolution_of_fewer_dimensions() -> None:
    model = randomised(nn.Sequential(nn.ConvTranspose3d(4, 6, 3, padding=1), Apply(lambda y: y.mean(2, keepdim=True))), 0)
    size = (2, 4, 8, 6, 7)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, conv_reduce.TECHNIQUES)
    assert fired == ["reduce_convolution"]
    targets = {str(n.target) for n in after.graph.nodes}
    assert "aten.conv_transpose2d.input" in targets and "aten.conv_transpose3d.input" not in targets
    assert_numerically_sound(before, after, size, model)


def test_does_not_fire_when_the_convolution_has_another_reader() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), Apply(lambda y: (y.mean((2, 3)), y.relu())))
    ir = captured(model, torch.zeros(1, 2, 6, 6))
    assert not list(conv_reduce.REDUCE_CONVOLUTION.sites(ir))
