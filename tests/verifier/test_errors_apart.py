"""Errors of what a mask sets and of the rest are those of each part alone."""

from __future__ import annotations

import pytest
import torch

from warpwright.verifier.judge import oracle


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("odd", [None, "exact", "value"])
def test_each_part_has_the_errors_that_it_has_alone(dtype: torch.dtype, share: float, odd: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(oracle.CHUNKS, "cpu", 100)
    torch.manual_seed(0)
    exact = torch.randn(17, 33, dtype=torch.complex128 if dtype.is_complex else torch.float64) + 5
    values, there = exact.to(dtype), torch.rand(17, 33) < share
    if odd:
        (exact if odd == "exact" else values)[3, 4] = float("inf")
    alone = oracle.errors_of(values[~there], exact[~there]), oracle.errors_of(values[there], exact[there])
    for seen, wanted in zip(oracle.errors_apart(values, exact, there), alone, strict=True):
        assert [seen.max, seen.rms, seen.centred] == pytest.approx([wanted.max, wanted.rms, wanted.centred], rel=1e-9, abs=1e-300)
