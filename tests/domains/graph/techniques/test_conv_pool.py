"""Merging of pools: exact for random shapes in float64, sound in float32."""

from __future__ import annotations

import random

import pytest
import torch
from exactness import assert_equal_in_double, assert_numerically_sound, captured, fixpoint, randomised
from shapes import AVERAGE_POOL, MAX_POOL, convolution
from torch import nn

from warpwright.domains.graph.techniques.convolutions import conv_pool


@pytest.mark.parametrize("seed", range(16))
def test_any_average_pool_of_any_convolution(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    d, transposed = 1 + seed % 3, seed % 2 == 0
    conv, x = convolution(rng, transposed, d, least=4)
    width = [rng.randint(1, 4) for _ in range(d)]
    strides = [s * rng.randint(1, 2) for s in conv.stride] if transposed else [rng.randint(1, 4) for _ in range(d)]
    model = randomised(nn.Sequential(conv, AVERAGE_POOL[d](width, stride=strides)), seed)
    before = captured(model, x)
    after, _ = fixpoint(before, conv_pool.TECHNIQUES)
    assert_equal_in_double(before, after, [x], model)


@pytest.mark.parametrize(
    ("conv", "pool", "size"),
    [
        (nn.Conv2d(3, 5, 3), nn.AvgPool2d(4), (2, 3, 18, 19)),
        (nn.Conv2d(3, 5, 3, stride=2, padding=1), nn.AvgPool2d(2), (2, 3, 17, 16)),
        (nn.ConvTranspose3d(2, 4, 3, stride=2, padding=1), nn.AvgPool3d(2), (2, 2, 4, 5, 6)),
        (nn.ConvTranspose2d(2, 4, 4, stride=2, padding=1, output_padding=1), nn.AvgPool2d(4), (2, 2, 6, 7)),
        (nn.ConvTranspose2d(4, 4, 2, stride=2, groups=2), nn.AvgPool2d(2), (2, 4, 6, 7)),
    ],
)
def test_one_convolution_is_left(conv: nn.Module, pool: nn.Module, size: tuple[int, ...]) -> None:
    model = randomised(nn.Sequential(conv, pool), 0)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, conv_pool.TECHNIQUES)
    assert fired == ["merge_convolution_pool"]
    assert not any("avg_pool" in str(n.target) or "transpose2d" in str(n.target) for n in after.graph.nodes)
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model)


@pytest.mark.parametrize("seed", range(8))
def test_pool_of_pool(seed: int) -> None:
    rng = random.Random(seed)
    d = 1 + seed % 3
    pools = MAX_POOL if seed % 2 else AVERAGE_POOL
    first, second = ([rng.randint(1, 3) for _ in range(d)] for _ in range(2))
    model = nn.Sequential(pools[d](first), pools[d](second, stride=[rng.randint(1, 3) for _ in range(d)]))
    x = torch.randn(2, 2, *[rng.randint(9, 13) for _ in range(d)])
    before = captured(model, x)
    after, fired = fixpoint(before, conv_pool.TECHNIQUES)
    assert fired == ["merge_pools"]
    assert_equal_in_double(before, after, [x], model)


def test_overlapping_averages_are_not_merged() -> None:
    ir = captured(nn.Sequential(nn.AvgPool1d(3, stride=2), nn.AvgPool1d(2)), torch.zeros(1, 2, 20))
    assert not [a for t in conv_pool.TECHNIQUES for a in t.sites(ir)]
