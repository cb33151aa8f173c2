"""`abs` of a program that includes no header: CUDA has it for each type, C for ints alone."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from executables import PLAIN

from warpwright.domains import transpile

TEXT = """
__global__ void k(const long long* x, long long* wide, float* real, double* doubled, long long* by_ptx) {
  const int i = threadIdx.x;
  wide[i] = abs(x[i]);
  real[i] = abs(x[i] * -0x1p-40f);
  doubled[i] = abs(-2.5 - i);
  long long r;
  asm("abs.s64 %0, %1;" : "=l"(r) : "l"(x[i]));
  by_ptx[i] = r;
}
"""


@pytest.mark.compiler
@pytest.mark.parametrize("tier", ["fibers", None])
def test_abs_of_each_type(tier: str | None) -> None:
    x = np.random.default_rng(0).integers(-(2**60), 2**60, 32)
    wide, by_ptx, real, doubled = np.zeros_like(x), np.zeros_like(x), np.zeros(32, np.float32), np.zeros(32)
    transpile.compile_text(TEXT, tier=tier).load(PLAIN)["k"][1, 32](x, wide, real, doubled, by_ptx)
    assert np.array_equal(wide, abs(x)) and np.array_equal(by_ptx, abs(x))
    assert np.array_equal(real, abs(x.astype(np.float32) * np.float32(2.0**-40))) and np.array_equal(doubled, 2.5 + np.arange(32))
