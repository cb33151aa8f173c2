"""Transposed convolutions as ordinary ones: exact for random shapes in float64, sound in float32."""

from __future__ import annotations

import random

import pytest
import torch
from exactness import KINDS, assert_equal_in_double, assert_numerically_sound, captured, fixpoint, randomised
from shapes import MAX_POOL, Apply, convolution
from torch import nn

from warpwright.domains.graph.techniques.convolutions import conv_transpose, lattice


@pytest.mark.parametrize("seed", range(36))
def test_any_transposed_convolution(seed: int) -> None:
    conv, x = convolution(random.Random(seed), transposed=True, d=1 + seed % 3)
    model = randomised(conv, seed)
    before = captured(model, x)
    after, _ = fixpoint(before, (*lattice.TECHNIQUES, *conv_transpose.TECHNIQUES))
    assert_equal_in_double(before, after, [x], model)


@pytest.mark.parametrize("seed", range(12))
def test_reductions_come_before_the_interleaving(seed: int) -> None:
    rng = random.Random(seed)
    d = 2 + seed % 2
    kernel, stride = [rng.randint(1, 5) for _ in range(d)], [rng.randint(1, 2) for _ in range(d)]
    stride[0] = 2
    conv = (nn.ConvTranspose2d if d == 2 else nn.ConvTranspose3d)(2, 3, kernel, stride=stride, padding=[rng.randint(0, (k - 1) // 2) for k in kernel])
    widths = [s * rng.randint(1, 2) for s in stride]
    tail = MAX_POOL[d](widths, stride=[s * rng.randint(1, 3) for s in stride]) if seed % 3 else Apply(lambda y: y.logsumexp(1, keepdim=seed % 2 == 0))
    model = randomised(nn.Sequential(conv, tail), seed)
    x = torch.randn(2, 2, *[rng.randint(4, 6) for _ in range(d)])
    before = captured(model, x)
    after, fired = fixpoint(before, conv_transpose.TECHNIQUES)
    assert fired == ["pool_before_interleaving" if seed % 3 else "channels_before_interleaving"]
    assert_equal_in_double(before, after, [x], model)


def test_float32_error_stays_near_the_original() -> None:
    for conv in (nn.ConvTranspose3d(6, 4, 3, stride=2, padding=1, output_padding=1), nn.ConvTranspose2d(6, 4, 5, padding=1)):
        model = randomised(conv, 0)
        size = (2, 6, 5, 6, 7)[: 2 + len(conv.stride)]
        before = captured(model, torch.zeros(size))
        after, fired = fixpoint(before, conv_transpose.TECHNIQUES)
        assert fired
        assert_numerically_sound(before, after, size, model)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 1), (4, 2, 1), (2, 3, 0), (5, [2, 1], [2, 0])])
def test_statistics_come_before_the_interleaving(kernel: int, stride: int, padding: int) -> None:
    conv = nn.ConvTranspose2d(3, 4, kernel, stride=stride, padding=padding)
    model = randomised(nn.Sequential(conv, Apply(lambda y: torch.var_mean(y, [0, 2, 3], correction=0))), 0)
    size = (3, 3, 6, 5)
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, conv_transpose.TECHNIQUES)
    assert fired == ["statistics_before_interleaving"]
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    # without input the original's variance is exactly zero, ours the square of a rounding error
    assert_numerically_sound(before, after, size, model, KINDS[:4])


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"stride": (2, 3), "padding": (1, 2), "dilation": (2, 1), "groups": 2, "bias": False}, (2, 4, 6, 5)),
        ({"stride": 2, "padding": 1, "dilation": 2}, (2, 4, 6, 5)),
        ({"stride": 4, "padding": 3, "dilation": 2, "output_padding": 3}, (2, 4, 3, 4)),
        ({"stride": 5, "padding": 1, "dilation": 2}, (2, 4, 3, 4)),
    ],
)
def test_dead_outputs_are_never_computed(options: dict[str, object], size: tuple[int, ...]) -> None:
    model = randomised(nn.ConvTranspose2d(4, 6, 3, **options), 0)  # type: ignore[arg-type]
    before = captured(model, torch.zeros(size))
    after, fired = fixpoint(before, (*lattice.TECHNIQUES, *conv_transpose.TECHNIQUES))
    assert fired and not any("conv_transpose" in str(n.target) for n in after.graph.nodes)
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert_numerically_sound(before, after, size, model)
