"""Transposed convolutions in float64 as products of matrices: as torch's own over shapes of every kind. And the moments of a GPU's errors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwright.verifier.judge import oracle
from warpwright.verifier.judge.original import products, tf32


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_as_torch(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    axes, groups = draw(1, 3), data.draw(st.sampled_from([1, 1, 2, 3]))
    inner, outer, samples = groups * draw(1, 3), groups * draw(1, 3), draw(1, 3)
    window, stride, dilation = ([draw(1, 3) for _ in range(axes)] for _ in range(3))
    padding = [draw(0, k - 1) for k in window]
    more = [draw(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)]
    sizes = [d * (k - 1) + 1 + draw(0, 4) for k, d in zip(window, dilation, strict=True)]
    generator = torch.Generator().manual_seed(draw(0, 1 << 30))
    x = torch.randn(samples, inner, *sizes, dtype=torch.float64, generator=generator)
    weight = torch.randn(inner, outer // groups, *window, dtype=torch.float64, generator=generator)
    bias = torch.randn(outer, dtype=torch.float64, generator=generator) if data.draw(st.booleans()) else None
    expected = torch.ops.aten.convolution(x, weight, bias, stride, padding, dilation, True, more, groups)
    seen = products.transposed(x, weight, bias, stride, padding, dilation, more, groups)
    assert seen.shape == expected.shape and seen.is_contiguous()
    torch.testing.assert_close(seen, expected, rtol=1e-13, atol=1e-12)


def test_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(products, "PART_BYTES", 1)
    x, weight = torch.randn(5, 4, 9, 9, dtype=torch.float64), torch.randn(4, 6, 3, 3, dtype=torch.float64)
    expected = torch.nn.functional.conv_transpose2d(x, weight, padding=1)
    torch.testing.assert_close(products.transposed(x, weight, None, [1], [1], [1], [0], 1), expected, rtol=1e-13, atol=1e-12)


def test_within_rounded_operands(monkeypatch) -> None:
    """Operands are rounded before they are multiplied, whichever way that is done."""
    monkeypatch.setattr(products, "_is_wide", lambda x, weight: x.dtype is torch.float64 is weight.dtype)
    layer, x = torch.nn.ConvTranspose2d(3, 4, 3).double(), torch.randn(2, 3, 6, 6, dtype=torch.float64)
    rounding = tf32.RoundedOperands(tf32.CONVOLUTIONS)
    with torch.no_grad():
        with products.WideProducts(), rounding:
            seen = layer(x)
        layer.weight.copy_(tf32.round_operand(layer.weight))
        torch.testing.assert_close(seen, layer(tf32.round_operand(x)), rtol=1e-13, atol=1e-13)
    assert rounding.count == 1


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_moments_in_few_passes(kind, monkeypatch) -> None:
    """Those of a GPU are those of the longer way; where digits would be lost, or something is not finite, there are none."""
    monkeypatch.setattr(oracle, "CACHED", 1000)
    exact = torch.randn(12345, dtype=torch.float64)
    values = exact.to(kind) * 1.0001
    errors = (oracle._moments_on_gpu(values, exact), oracle.errors_of(values, exact))
    for quick, usual in (errors, (oracle._moments_on_gpu(exact), oracle.scale_of(exact))):
        assert quick is not None and quick[:3] == pytest.approx(tuple(usual.__dict__.values())[:3], rel=1e-9)
    assert oracle._moments_on_gpu(exact + 1e5) is None
    assert oracle._moments_on_gpu(torch.tensor([1.0, torch.inf]).double()) is None
    assert oracle._moments_on_gpu(exact, exact) == (0.0, 0.0, 0.0, 12345)
