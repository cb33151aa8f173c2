"""Trees over the threads of a block in shared memory: steps of known number are written out, steps at unknown distances are left scalar."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

TEXT = r"""
__global__ void halved(const float* x, float* y, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  y[t] = s[t];
}
__global__ void doubled(const float* x, float* y, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  for (unsigned d = 1; d < blockDim.x; d *= 2) {
    __syncthreads();
    if (t % (2 * d) == 0 && t + d < blockDim.x) s[t] = fmaxf(s[t], s[t + d]);
  }
  __syncthreads();
  y[t] = s[t];
}
__global__ void unknown(const float* x, float* y, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  for (int d = n; d > 0; d /= 2) {
    __syncthreads();
    if (t < d && t + d < blockDim.x) s[t] += s[t + d];
  }
  __syncthreads();
  y[t] = s[t];
}
__global__ void scattered(const float* x, float* y, int n) {
  __shared__ float s[512];
  int t = threadIdx.x, step = 1;
  s[2 * t] = x[t];
  s[2 * t + 1] = 2 * x[t];
  for (int d = 128; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d && step * (2 * t + 2) - 1 < 2 * blockDim.x) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
    step *= 2;
  }
  __syncthreads();
  y[t] = s[2 * t] + s[2 * t + 1];
}
__global__ void pitched(const float* x, float* y, int n) {
  __shared__ float s[4 * 64];
  s[threadIdx.x * blockDim.y + threadIdx.y] = x[threadIdx.y * blockDim.x + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * blockDim.x + threadIdx.x] = s[threadIdx.y * blockDim.x + threadIdx.x];
}
"""
BLOCKS = {"halved": (128, 1, 1), "doubled": (256, 1, 1), "unknown": (256, 1, 1), "scattered": (256, 1, 1), "pitched": (64, 4, 1)}
LAUNCHES = {"halved": (128, 64, 96, 1), "doubled": (256, 100, 33, 1), "unknown": (256, 70), "scattered": (256, 64), "pitched": ((64, 4), (16, 8))}


@pytest.fixture(scope="module")
def tiers() -> dict[str, dict[str, transpile.LoadedKernel]]:
    return {tier: transpile.compile_text(TEXT, tier=tier, blocks=BLOCKS).load() for tier in ("vectors", "fibers")}


@pytest.mark.compiler
@pytest.mark.parametrize("kernel", LAUNCHES)
def test_trees_give_what_fibers_give(kernel: str, tiers: dict[str, dict[str, transpile.LoadedKernel]]) -> None:
    x = np.random.default_rng(0).standard_normal(512).astype(np.float32)
    for block in LAUNCHES[kernel]:
        seen = {tier: np.zeros(512, np.float32) for tier in tiers}
        for tier, kernels in tiers.items():
            kernels[kernel][1, block](x, seen[tier], 90)
        np.testing.assert_array_equal(seen["vectors"], seen["fibers"], f"{kernel} {block}")


def test_what_is_written_out_and_what_stays_scalar() -> None:
    source = transpile.compile_text(TEXT, blocks=BLOCKS).source
    bodies = {name: source.split(f"static void {name}_block", 1)[1].split(f"static void {name}_launch", 1)[0] for name in BLOCKS}
    unrolled = {name for name, body in bodies.items() if "#pragma GCC unroll 16\n" in body}
    assert unrolled == {"halved", "doubled", "scattered"}
    loop = bodies["scattered"].split("for (int d = 128", 1)[1].split("step *= 2", 1)[0]
    assert "#pragma omp simd" not in loop
    assert "distance known only when it runs" not in source.split("kernel pitched", 1)[1].split("\n", 1)[0]
