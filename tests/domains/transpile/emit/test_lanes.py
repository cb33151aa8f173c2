"""Warps in loops over lanes: every shuffle at every distance, and branches that whole warps take or leave."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

SHUFFLES = {"down": "unsigned", "up": "unsigned", "xor": "int"}

TEXT = "".join(
    f"""extern "C" __global__ void by_{way}(const float* x, float* y, int by, int width) {{
  float v = x[threadIdx.x];
  v = __shfl_{way}_sync(0xffffffffu, v, ({given})by, width);
  y[threadIdx.x] = v;
}}
"""
    for way, given in SHUFFLES.items()
)
TEXT += r"""
extern "C" __global__ void doubles(const double* x, double* y) {
  double v = x[threadIdx.x];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  y[threadIdx.x] = v;
}
__device__ float total(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  return v;
}
extern "C" __global__ void first_warp(const float* x, float* y, int n, int m) {
  int warp = threadIdx.x >> 5;
  float v = x[threadIdx.x];
  if (warp < m) {
    int share = n / m;
    v = total(v) + share;
  }
  y[threadIdx.x] = v;
}
extern "C" __global__ void nobody(const int* ends, float* y, int n, int m) {
  __shared__ int steps;
  if (threadIdx.x == 0) steps = n;
  __syncthreads();
  if ((int)threadIdx.x < m) {
    for (int k = 0; k < n / m; ++k) {
      y[threadIdx.x] += ends[k];
      __syncthreads();
    }
  }
  y[threadIdx.x] += steps;
}
"""


@pytest.fixture(scope="module")
def tiers() -> list[dict[str, transpile.LoadedKernel]]:
    return [transpile.compile_text(TEXT, tier=tier).load() for tier in ("vectors", "fibers")]


@pytest.mark.compiler
@pytest.mark.parametrize("way", SHUFFLES)
def test_every_distance_and_width(way: str, tiers: list[dict[str, transpile.LoadedKernel]]) -> None:
    x = np.arange(64, dtype=np.float32) + 100
    for width in (1, 2, 4, 8, 16, 32):
        for by in (*range(34), 64):
            seen, expected = np.zeros(64, np.float32), np.zeros(64, np.float32)
            for made, out in zip(tiers, (seen, expected), strict=True):
                made[f"by_{way}"][1, 64](x, out, by, width)
            assert np.array_equal(seen, expected), (way, by, width)


@pytest.mark.compiler
def test_a_branch_that_whole_warps_take(tiers: list[dict[str, transpile.LoadedKernel]]) -> None:
    x = np.arange(96, dtype=np.float32)
    for m in (0, 1, 2, 5):  # with m = 0 nobody is in the branch: n / m is not computed
        seen, expected = np.zeros(96, np.float32), np.zeros(96, np.float32)
        for made, out in zip(tiers, (seen, expected), strict=True):
            made["first_warp"][1, 96](x, out, 100, m)
        assert np.array_equal(seen, expected), m


@pytest.mark.compiler
def test_a_branch_that_nobody_takes(tiers: list[dict[str, transpile.LoadedKernel]]) -> None:
    ends = np.arange(9, dtype=np.int32)
    for m in (0, 64):
        seen, expected = np.zeros(64, np.float32), np.zeros(64, np.float32)
        for made, out in zip(tiers, (seen, expected), strict=True):
            made["nobody"][1, 64](ends, out, 128, m)
        assert np.array_equal(seen, expected), m


@pytest.mark.compiler
def test_doubles(tiers: list[dict[str, transpile.LoadedKernel]]) -> None:
    x, y = np.arange(32, dtype=np.float64), np.zeros(32)
    tiers[0]["doubles"][1, 32](x, y)
    assert (y == x.sum()).all()


def test_a_loop_inside_a_branch_is_one_loop() -> None:
    """Its counter is declared inside: all threads that are there agree on it."""
    source = transpile.compile_text(TEXT).source.partition("static void first_warp_block")[2].partition("static void first_warp_launch")[0]
    assert "for (int o = 16; o > 0; o >>= 1)" in source and "any_active" not in source
