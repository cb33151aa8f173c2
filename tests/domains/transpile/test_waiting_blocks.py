"""Blocks that wait for one another by flags in memory: blocks go on in turns, so that none can run to its end first."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.domains.transpile.fibers import waiting
from warpwright.domains.transpile.frontend import source as reading

KERNEL = """
__global__ void in_turn(int tasks, int* flags, int* sum, int* order) {
  for (int task = blockIdx.x; task < tasks; task += gridDim.x) {
    if (threadIdx.x == 0) {
      while (atomicAdd(&flags[task], 0) == 0) {
      }
      order[task] = *sum;
      *sum += task;
      __threadfence();
      atomicAdd(&flags[task + 1], 1);
    }
    __syncthreads();
  }
}
"""


@pytest.mark.compiler
@pytest.mark.parametrize("blocks", [1, 4])
def test_blocks_that_wait_for_one_another_end(blocks: int) -> None:
    program = transpile.compile_text(KERNEL)
    assert program.kernels["in_turn"].tier == "fibers" and program.kernels["in_turn"].reason.endswith("it waits for what another block writes")
    tasks = 21
    flags, total, order = np.zeros(tasks + 1, np.int32), np.zeros(1, np.int32), np.full(tasks, -1, np.int32)
    flags[0] = 1
    program.load()["in_turn"][blocks, 32](tasks, flags, total, order)
    assert total[0] == sum(range(tasks)) and order.tolist() == [k * (k - 1) // 2 for k in range(tasks)]


@pytest.mark.parametrize(
    ("body", "found"),
    [("while (atomicAdd(&f[i], 0) == 0);", 1), ("while (atomicOr_system(f + i, 0u) != 3) { }", 1), ("while (atomicCAS(f, 0, 1)) {}", 0),
     ("while (atomicAdd(f, 1) == 0) {}", 0), ("do { i += 1; } while (atomicAdd(f, 0) == i);", 0), ("while (atomicAdd(f, 0) == 0) { i += 1; }", 0)],
)  # fmt: skip
def test_which_loops_wait(body: str, found: int) -> None:
    source = reading.read(f"__global__ void k(int* f, int i) {{ {body} }}")
    assert len(waiting.waits(source, source.kernels[0])) == found
