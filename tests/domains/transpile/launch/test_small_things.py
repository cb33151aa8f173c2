"""Instructions, heads of kernels and directed rounding that shipped programs use."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

TEXT = r"""
extern "C" __launch_bounds__(64) __global__ void bits(const unsigned* x, unsigned* y) {
  unsigned high, apart;
  asm("bfind.u32 %0, %1;" : "=r"(high) : "r"(x[threadIdx.x]));
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(apart) : "r"(x[threadIdx.x]), "r"(0x01020304u), "r"(100u));
  y[2 * threadIdx.x] = high;
  y[2 * threadIdx.x + 1] = apart;
}
__global__ void rounded(const float* a, const float* b, float* out) {
  int i = threadIdx.x, n = blockDim.x;
  out[i] = __fadd_rd(a[i], b[i]); out[n + i] = __fadd_ru(a[i], b[i]);
  out[2 * n + i] = __fmul_rd(a[i], b[i]); out[3 * n + i] = __fmul_ru(a[i], b[i]);
  out[4 * n + i] = __fdiv_rz(a[i], b[i]); out[5 * n + i] = __double2float_ru((double)a[i] / 3);
}
"""


def test_bits_and_directed_rounding() -> None:
    loaded = transpile.compile_text(TEXT, "small.cu").load()
    x, y = np.array([0, 1, 255, 0x80000000], np.uint32), np.zeros(8, np.uint32)
    loaded["bits"][1, 4](x, y)
    other = np.array([1, 2, 3, 4])
    apart = [100 + int(np.abs(np.array([v >> s & 255 for s in (24, 16, 8, 0)], int) - other).sum()) for v in map(int, x)]
    assert y.tolist() == [0xFFFFFFFF, apart[0], 0, apart[1], 7, apart[2], 31, apart[3]]
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(64) * 10.0 ** rng.integers(-3, 4, 64)).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    out = np.zeros(6 * 64, np.float32)
    loaded["rounded"][1, 64](a, b, out)
    got, wide = out.reshape(6, 64).astype(np.longdouble), (a.astype(np.longdouble), b.astype(np.longdouble))
    below = lambda v: np.nextafter(v.astype(np.float32), np.float32(-np.inf))  # noqa: E731
    above = lambda v: np.nextafter(v.astype(np.float32), np.float32(np.inf))  # noqa: E731
    for down, up, exact in ((0, 1, wide[0] + wide[1]), (2, 3, wide[0] * wide[1])):
        assert (got[down] <= exact).all() and (above(got[down]) > exact).all()
        assert (got[up] >= exact).all() and (below(got[up]) < exact).all()
    exact = wide[0] / wide[1]
    assert (np.abs(got[4]) <= np.abs(exact)).all()
    assert (np.nextafter(np.abs(got[4]).astype(np.float32), np.float32(np.inf)) > np.abs(exact)).all()
    third = a.astype(np.float64) / 3
    assert (got[5] >= third).all() and (below(got[5]) < third).all()


def test_shared_arrays_of_a_file_are_aligned() -> None:
    """g++ 12 reads them by aligned vectors and left them at 4 bytes (dct8x8 of the CUDA samples ended by a signal where others stood in front)."""
    text = """
__shared__ char before[5];
static __shared__ float sums[64];
volatile __shared__ float seen[3];
__global__ void k(int* out) {
  before[0] = 1, sums[threadIdx.x] = 2, seen[0] = 3;
  __syncthreads();
  out[threadIdx.x] = (int)(((size_t)(void*)sums | (size_t)(void*)before | (size_t)(void*)seen) % 32) + (int)sums[threadIdx.x];
}"""
    for tier in ("fibers", None):
        out = np.zeros(64, np.int32)
        transpile.compile_text(text, tier=tier).load()["k"][1, 64](out)
        assert (out == 2).all()
