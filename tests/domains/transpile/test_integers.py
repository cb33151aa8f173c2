"""Whole numbers in vectors: quotients by a divisor known at run time, and addresses made of the steps of a strided loop."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

KERNELS = r"""
__global__ void divide(const int* x, int* quotients, int* rests, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int v = x[i];
    quotients[i] = v / by;
    rests[i] = v % by;
  }
}
__global__ void halo(const float* in, float* out, int w, int h) {
  __shared__ float tile[10][34];
  int left = blockIdx.x * 32 - 1, top = blockIdx.y * 8 - 1;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < 10 * 34; i += 256) {
    int x = left + i % 34, y = top + i / 34;
    tile[i / 34][i % 34] = (x >= 0 && x < w && y >= 0 && y < h) ? in[y * w + x] : 0.f;
  }
  __syncthreads();
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < w && y < h) out[y * w + x] = tile[threadIdx.y][threadIdx.x] - tile[threadIdx.y + 2][threadIdx.x + 2];
}
"""


@pytest.fixture(scope="module")
def program() -> transpile.Program:
    return transpile.compile_text(KERNELS, "integers.cu", blocks={"divide": (64, 1, 1), "halo": (32, 8, 1)})


def test_quotients_are_exact(program: transpile.Program) -> None:
    assert program.kernels["divide"].tier == "vectors" and "ww::quotient(v, by)" in program.source and "ww::rest(v, by)" in program.source
    edges = np.array([0, 1, -1, 2**31 - 1, -(2**31), -(2**31) + 1, 2**30, 46341 * 46340, 2**31 - 2], np.int64)
    numbers = np.random.default_rng(0).integers(-(2**31), 2**31, 4000)
    kernels = program.load()
    for by in (1, 2, 3, -7, 640, 46340, 46341, 2**30 + 1, 2**31 - 1, -(2**31)):
        near = np.concatenate([k * by + np.arange(-1, 2) for k in (-3, -1, 1, 2, 5, (2**31 - 2) // by)])
        x = np.concatenate([edges, numbers, near[(near >= -(2**31)) & (near < 2**31)]])
        sign = np.where((x < 0) != (by < 0), -1, 1)
        quotients = sign * (np.abs(x) // abs(by))
        made = [np.zeros(x.size, np.int32), np.zeros(x.size, np.int32)]
        kernels["divide"][-(-x.size // 64), 64](x.astype(np.int32), *made, x.size, by)
        np.testing.assert_array_equal(made[0], quotients)
        np.testing.assert_array_equal(made[1], x - quotients * by)


def test_steps_count_from_zero(program: transpile.Program) -> None:
    assert "ww::to_next<34, 1>" in program.source
    x = np.random.default_rng(0).standard_normal((37, 50)).astype(np.float32)
    wide = np.pad(x, 1)
    for kernels in (program.load(), transpile.compile_text(KERNELS, "integers.cu", tier="fibers").load()):
        y = np.zeros_like(x)
        kernels["halo"][(2, 5), (32, 8)](x, y, 50, 37)
        np.testing.assert_array_equal(y, wide[:-2, :-2] - wide[2:, 2:])
