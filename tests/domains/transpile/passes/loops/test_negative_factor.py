"""A factor of threadIdx.x that turns out to be negative when the kernel runs: what is said of a block's first and last thread does not hold then."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

TEXT = """
extern "C" __global__ void steps(const int* x, int* y, int n, int k) {
  int sum = 0;
  for (int i = 64 + threadIdx.x * k; i < n; i += 48) sum += x[i];
  y[threadIdx.x] = sum;
}
extern "C" __global__ void inside(const int* x, int* y, int n, int k) {
  int i = 64 + threadIdx.x * k;
  y[threadIdx.x] = i < n ? x[i] : -1;
}
"""


@pytest.fixture(scope="module")
def tiers() -> list[dict[str, transpile.LoadedKernel]]:
    return [transpile.compile_text(TEXT, tier=tier).load() for tier in ("vectors", "fibers")]


@pytest.mark.compiler
@pytest.mark.parametrize("kernel", ["steps", "inside"])
def test_a_factor_of_any_sign(kernel: str, tiers: list[dict[str, transpile.LoadedKernel]]) -> None:
    x = np.arange(100, 400, dtype=np.int32)
    for k in (-2, -1, 0, 1, 3):
        for n in (10, 50, 65, 90, 150):
            answers = [np.zeros(32, np.int32) for _ in tiers]
            for made, y in zip(tiers, answers, strict=True):
                made[kernel][1, 32](x, y, n, k)
            assert np.array_equal(*answers), (k, n)
