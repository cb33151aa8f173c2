"""How fast a kernel with cooperative groups is beside the same with shuffles, and on fibers: `python -m benchmarks.real_cuda.groups`.

A layer norm, a warp a row; one thread of the machine; the least of five times, by the thread's clock. Prints rows of the table `groups`.
"""

from __future__ import annotations

import json
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import warpwright.transpile

ROWS, COLUMNS = 2048, 768

GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void norm(float* out, const float* x, int n, int columns) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= n) return;
  const float* in = x + row * columns;
  float sum = 0.f;
  for (int i = warp.thread_rank(); i < columns; i += warp.size()) sum += in[i];
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float mean = sum / columns, var = 0.f;
  for (int i = warp.thread_rank(); i < columns; i += warp.size()) { float d = in[i] - mean; var += d * d; }
  var = cg::reduce(warp, var, cg::plus<float>{});
  float s = rsqrtf(var / columns + 1e-5f);
  for (int i = warp.thread_rank(); i < columns; i += warp.size()) out[row * columns + i] = (in[i] - mean) * s;
}"""

SHUFFLES = """
__global__ void norm(float* out, const float* x, int n, int columns) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= n) return;
  const float* in = x + row * columns;
  float sum = 0.f;
  for (int i = threadIdx.x % 32; i < columns; i += 32) sum += in[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  float mean = sum / columns, var = 0.f;
  for (int i = threadIdx.x % 32; i < columns; i += 32) { float d = in[i] - mean; var += d * d; }
  for (int d = 16; d > 0; d /= 2) var += __shfl_xor_sync(~0u, var, d);
  float s = rsqrtf(var / columns + 1e-5f);
  for (int i = threadIdx.x % 32; i < columns; i += 32) out[row * columns + i] = (in[i] - mean) * s;
}"""


def main() -> None:
    """Print a row a variant; its answer is compared with numpy's in double."""
    x = np.random.default_rng(0).random((ROWS, COLUMNS), dtype=np.float32)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    for name, text, tier in (("groups", GROUPS, None), ("shuffles", SHUFFLES, None), ("groups, on fibers", GROUPS, "fibers")):
        norm = warpwright.transpile.loads(text, tier=tier).norm
        out, times = np.zeros_like(x), []
        launch = norm[ROWS // 8, 256]
        for _ in range(6):
            begun = time.thread_time()
            launch(out, x, ROWS, COLUMNS)
            times.append(time.thread_time() - begun)
        error = float(np.abs(out - exact).max())
        row = {"table": "groups", "kernel": name, "tier": norm.tier, "ms": round(1e3 * min(times[1:]), 2), "largest error": f"{error:.1e}"}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
