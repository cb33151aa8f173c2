"""Threads that part and wait in both branches: a GPU counts who waits, wherever; the loops do not, so that such a kernel runs on fibers."""

from __future__ import annotations

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

HALVES = """
__global__ void halves(const int* in, int* out, int n) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  const bool second = t >= blockDim.x / 2;
  for (int i = 0; i < n; ++i) {
    if (!second) {
      s[t] = in[t] + i;
      __syncthreads();
      out[t] += s[t + 64];
      __syncthreads();
    } else {
      s[t] = 3 * in[t] - i;
      __syncthreads();
      out[t] += s[t - 64];
      __syncthreads();
    }
  }
}
"""


@pytest.mark.compiler
def test_both_halves_meet() -> None:
    program = transpile.compile_text(HALVES)
    assert program.kernels["halves"].tier == "fibers" and "wait in both branches" in program.kernels["halves"].reason
    values, out = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    program.load(PLAIN)["halves"][1, 128](values, out, 3)
    assert np.array_equal(out[:64], sum(3 * values[64:] - i for i in range(3)))
    assert np.array_equal(out[64:], sum(values[:64] + i for i in range(3)))


def test_a_condition_that_may_be_one_for_all_stays_in_loops() -> None:
    text = HALVES.replace("t >= blockDim.x / 2", "in[0] > n")
    assert transpile.compile_text(text).kernels["halves"].tier != "fibers"
