"""Lanes side by side: rows of a matrix by warps, shuffles of whole warps, single lanes; every tier gives what fibers give."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

KERNELS = r"""
__device__ int warp_sum(int v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
__global__ void by_rows(const int* start, const int* x, int* y, int rows) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31, i_end = 7;
  if (warp >= rows) return;
  int sum = 0;
  const int* from = x + 1;
  for (int i = start[warp] + lane; i < start[warp + 1]; i += 32) sum += from[i] * i_end;
  sum = warp_sum(sum);
  if (lane == 3) y[warp] = sum + lane;
}
__global__ void rows_in_y(const int* start, const int* x, int* y, int rows) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  int sum = 0;
  for (unsigned i = threadIdx.x; i <= 90u; i += blockDim.x) sum += x[row * 91 + i];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) y[row] = sum;
}
__global__ void scaled(const int* start, const int* x, int* y, int rows) {
  int warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
  int most = -1;
  for (int i = lane; i < 77; i += warpSize) most = max(most, x[warp * 77 + i]);
  for (int o = 1; o < 32; o *= 2) most = max(most, __shfl_down_sync(0xffffffff, most, o));
  most = __shfl_sync(0xffffffff, most, 0);
  for (int i = lane; i < 77; i += warpSize) y[warp * 77 + i] = most - x[warp * 77 + i];
}
__global__ void far(const int* start, const int* x, int* y, int rows) {
  int t = threadIdx.x;
  double d = x[t];
  for (int o = 1; o < 70; o += 9) {
    d += __shfl_up_sync(0xffffffff, d, o) + 2 * __shfl_down_sync(0xffffffff, d, o) + 3 * __shfl_xor_sync(0xffffffff, d, o);
    d -= __shfl_sync(0xffffffff, d, o + start[1]) * (t % 32 > o ? 5 : 7);
    d -= floor(d / 1000) * 1000;
  }
  y[t] = (int)d;
}
__global__ void odd_lanes(const int* start, const int* x, int* y, int rows) {
  int t = threadIdx.x, lane = t & 31, v = x[t];
  if (x[t / 32] % 2) {
    for (int i = lane; i < x[t / 32] % 50; i += 32) v += x[i];
    v += __shfl_xor_sync(0xffffffff, v, 8);
  }
  if (lane - 5 == x[t / 32] % 16) y[1000 + t / 32] = v;
  y[t] = v;
}
"""
LAUNCHES = {
    "by_rows": [(9, 128), (13, 96)], "rows_in_y": [(5, (32, 4)), (7, (32, 2)), (9, (32, 1))], "scaled": [(1, 192), (1, 64)],
    "far": [(1, 256), (1, 64)], "odd_lanes": [(1, 128), (1, 96)],
}  # fmt: skip


@pytest.fixture(scope="module")
def tiers() -> dict[str, dict[str, object]]:
    blocks = {"by_rows": (128, 1, 1), "rows_in_y": (32, 4, 1), "scaled": (192, 1, 1), "far": (256, 1, 1), "odd_lanes": (128, 1, 1)}
    return {tier: transpile.compile_text(KERNELS, "warps.cu", tier=tier, blocks=blocks).load() for tier in ("vectors", "loops", "fibers")}


@pytest.mark.parametrize("kernel", list(LAUNCHES))
def test_lanes_give_what_fibers_give(tiers: dict[str, dict[str, object]], kernel: str) -> None:
    rng = np.random.default_rng(0)
    x, start = rng.integers(-99, 99, 4096).astype(np.int32), np.cumsum(rng.integers(0, 90, 40)).astype(np.int32)
    x[:16] = np.abs(x[:16])
    for grid, block in LAUNCHES[kernel]:
        answers = {}
        for tier, kernels in tiers.items():
            answers[tier] = np.full(2048, -7, np.int32)
            kernels[kernel][grid, block](start, x, answers[tier], 33)  # type: ignore[index]
        for tier in ("vectors", "loops"):
            np.testing.assert_array_equal(answers[tier], answers["fibers"], f"{kernel} {block} {tier}")


def test_a_warp_shares_its_row_and_its_steps() -> None:
    source = transpile.compile_text(KERNELS, "warps.cu", blocks={"by_rows": (128, 1, 1)}).source
    body = source[source.index("static void by_rows_block") : source.index("static void by_rows_launch")]
    assert "const int warp = (block_x * dim_x + thread_x) / 32;" in body
    assert "for (; (long)steps_at + lanes <= steps_end; steps_at += steps_by)" in body
    assert "ww::lanes_xor(" in body
    assert "if (const long lane_index = (long)(3) - (long)(lane);" in body
