"""What every warp computes alike is computed by one, and what is then the same in all threads once: as fibers have it, for every shape of block."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

TEXT = r"""
__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
__device__ __forceinline__ float block_sum(float v, float* s) {
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  v = warp_sum(v);
  if (lane == 0) s[w] = v;
  __syncthreads();
  v = warp_sum(lane < blockDim.x / 32 ? s[lane] : 0.f);
  __syncthreads();
  return v;
}
__global__ void twice(const float* x, float* y, int n) {
  __shared__ float s[32];
  float mean = block_sum(x[threadIdx.x], s) / n;
  float squares = 0.f;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
  float scale = rsqrtf(block_sum(squares, s) / n + 1.f);
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) y[i] = (x[i] - mean) * scale;
}
__global__ void in_a_loop(const float* x, float* y, int n) {
  __shared__ float s[32];
  float v = x[threadIdx.x], most = 0.f;
  for (int k = 0; k < n; ++k) {
    most = most * 0.5f + block_sum(v, s);
    v = v * 0.25f + most;
    if (k == 1) most = v;
  }
  y[threadIdx.x] = v + most;
}
__global__ void half_a_butterfly(const float* x, float* y, int n) {
  __shared__ float s[32];
  if (threadIdx.x < 32) s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  int lane = threadIdx.x % 32;
  float v = s[lane];
  for (int o = 8; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  float half = v / n;
  __syncthreads();
  float z = s[31 - lane] * (1 + threadIdx.x / 32);
  for (int o = 1; o < 32; o *= 2) z = fmaxf(z, __shfl_xor_sync(0xffffffff, z, o));
  float other = z / n;
  __syncthreads();
  y[threadIdx.x] = half + other;
}
__global__ void broadcast(const float* x, float* y, int n) {
  __shared__ float s[32];
  if (threadIdx.x < 32) s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float v = s[threadIdx.x & 31] * 3;
  float first = __shfl_sync(0xffffffff, v, n);
  __syncthreads();
  float root = sqrtf(fabsf(first));
  __syncthreads();
  y[threadIdx.x] = root + x[threadIdx.x];
}
__global__ void in_two_dimensions(const float* x, float* y, int n) {
  __shared__ float s[32];
  int t = threadIdx.y * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  if (t < 32) s[t] = x[t];
  __syncthreads();
  float v = s[lane];
  v += __shfl_xor_sync(0xffffffff, v, 4);
  __syncthreads();
  float w = v / n;
  __syncthreads();
  y[t] = w;
}
"""
SHAPES = {
    "twice": (64, 256, 1024), "in_a_loop": (64, 256, 96), "half_a_butterfly": (64, 256), "broadcast": (32, 256),
    "in_two_dimensions": ((32, 4), (48, 2), (16, 4), (64, 3)),
}  # fmt: skip


@pytest.fixture(scope="module")
def tiers() -> dict[str, dict[str, transpile.LoadedKernel]]:
    blocks = {"twice": (256, 1, 1), "in_a_loop": (256, 1, 1), "in_two_dimensions": (48, 2, 1)}
    return {tier: transpile.compile_text(TEXT, tier=tier, blocks=blocks).load() for tier in ("vectors", "fibers")}


@pytest.mark.compiler
@pytest.mark.parametrize("kernel", SHAPES)
def test_every_shape_gives_what_fibers_give(kernel: str, tiers: dict[str, dict[str, transpile.LoadedKernel]]) -> None:
    x = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
    for block in SHAPES[kernel]:
        seen = {tier: np.zeros(1024, np.float32) for tier in tiers}
        for tier, kernels in tiers.items():
            kernels[kernel][1, block](x, seen[tier], 7)
        np.testing.assert_array_equal(seen["vectors"], seen["fibers"], f"{kernel} {block}")


def test_one_warp_and_one_thread_compute_for_all() -> None:
    source = transpile.compile_text(TEXT).source
    body = {name: source.split(f"static void {name}_block", 1)[1].split(f"static void {name}_launch", 1)[0] for name in SHAPES}
    assert body["twice"].count("// all warps do the same") == 2
    once = [part.split("} else {", 1)[0] for part in body["twice"].split("// all threads have the same")[1:]]
    assert any("mean_t, threads, mean" in part for part in once) and any("rsqrtf(" in part for part in once)
    assert "// all threads have the same" not in body["half_a_butterfly"]
    assert body["half_a_butterfly"].count("// all warps do the same") == 1
    assert "// all threads have the same" in body["broadcast"]
