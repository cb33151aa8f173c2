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


@pytest.mark.compiler
@pytest.mark.parametrize("kernel", ["steps", "inside"])
@pytest.mark.parametrize("k", [-2, -1, 0, 1, 3])
def test_a_factor_of_any_sign(kernel: str, k: int) -> None:
    x = np.arange(100, 400, dtype=np.int32)
    answers = []
    for tier in ("vectors", "fibers"):
        y = np.zeros(32, np.int32)
        for n in (10, 50, 65, 90, 150):
            transpile.compile_text(TEXT, tier=tier).load()[kernel][1, 32](x, y, n, k)
            answers.append(y.copy())
    assert np.array_equal(answers[:5], answers[5:])
