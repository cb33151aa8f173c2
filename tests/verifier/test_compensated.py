"""Float64 sums and products with twice the digits, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from warpwright.verifier.judge.original.compensated import Compensated

torch = pytest.importorskip("torch")


def values(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64) * 10 ** (8 * torch.rand(shape, generator=generator, dtype=torch.float64))


def test_sum_and_mean() -> None:
    x = values(3, 1001)
    wanted = [math.fsum(row) for row in x.tolist()]
    with Compensated():
        assert x.sum(1).tolist() == wanted
        assert x.sum().item() == math.fsum(x.flatten().tolist())
        assert x.mean(1, keepdim=True).flatten().tolist() == pytest.approx([total / 1001 for total in wanted], rel=2e-16)


def test_running_sum() -> None:
    x = values(2, 300)
    with Compensated():
        seen = torch.cumsum(x, 1)
    assert seen.tolist() == [[math.fsum(row[: end + 1]) for end in range(300)] for row in x.tolist()]


def test_products() -> None:
    a, b = values(4, 50), values(50, 3)
    exact = [[float(sum(Fraction(p) * Fraction(q) for p, q in zip(row, column, strict=True))) for column in b.t().tolist()] for row in a.tolist()]
    with Compensated():
        assert torch.matmul(a, b).tolist() == exact
        assert torch.matmul(a[0], b).tolist() == exact[0]
        assert torch.dot(a[0], b[:, 0].contiguous()).item() == exact[0][0]
        assert torch.bmm(a[None], b[None])[0].tolist() == exact


def test_what_it_does_not_know_stays_as_it_is() -> None:
    x = torch.tensor([1.0, math.inf, 2.0], dtype=torch.float64)
    with Compensated():
        assert x.sum().item() == math.inf
        assert torch.arange(5).sum().item() == 10
        assert torch.zeros(0, dtype=torch.float64).sum().item() == 0.0
