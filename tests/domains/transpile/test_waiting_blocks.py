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
    assert program.kernels["in_turn"].tier == "fibers" and program.kernels["in_turn"].reason.endswith("it waits for what another thread writes")
    tasks = 21
    flags, total, order = np.zeros(tasks + 1, np.int32), np.zeros(1, np.int32), np.full(tasks, -1, np.int32)
    flags[0] = 1
    program.load()["in_turn"][blocks, 32](tasks, flags, total, order)
    assert total[0] == sum(range(tasks)) and order.tolist() == [k * (k - 1) // 2 for k in range(tasks)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("while (atomicAdd(&f[i], 0) == 0);", 1),
        ("while (atomicOr_system(f + i, 0u) != 3) { }", 1),
        ("while (atomicCAS(f + i, 1, 1) != 1) { ; }", 1),
        ("while (atomicCAS(f, 0, 1)) {}", 0),
        ("while (atomicAdd(f, 1) == 0) {}", 0),
        ("while (atomicAnd(f, ~0) == 0) {}", 1),
        ("while (atomicAnd(f, 1) == 0) {}", 0),
        ("while (atomicAdd(f, 0) == 0) { i += 1; }", 0),
        ("while (*((volatile int*)f) == 0) {}", 1),
        ("volatile int* v = f; while (v[i] == 0) { __threadfence(); }", 1),
        ("if (i) { i = 2; } while (atomicAdd(f, 0) == 0);", 1),
        ("for (; atomicMax(f, 0x0) == 0;) __nanosleep(9);", 1),
        ("for (i = 0; atomicAdd(f, 0) == 0; ++i) {}", 0),
        ("do ; while (atomicAdd(f, 0) == 0);", 1),
        ("do { i += 1; } while (atomicAdd(f, 0) == i);", 0),
        ("do { i = 1; } while (i > 1); while (i);", 0),
        ("int s; do { s = atomicAdd(f, 0); } while (s == 0);", 1),
        ("int s = 0; while (s == 0) s = __ldcg(f);", 1),
        ("volatile int* v = f; int s; while ((s = v[i]) == 0) {}", 1),
        ("while (atomicAdd(f, 0) == 0 && i++ < 9) {}", 0),
        ("int s = 0; while (s == 0) s = f[i];", 0),
    ],
)
def test_which_loops_wait(body: str, found: int) -> None:
    source = reading.read(f"__global__ void k(int* f, int i) {{ {body} }}")
    assert len(waiting.waits(source, source.kernels[0])) == found


IN_REVERSE = """
template <class T> __device__ void wait(T* flag) { do {} while (atomicCAS(flag, 1, 1) == 0); }
__device__ int wait(const volatile int* flag, int least) { int seen; do { seen = *flag; } while (seen < least); return seen; }
__global__ void in_reverse(int* flags, int* out) {
  __shared__ int own;
  const int block = gridDim.x - 1 - blockIdx.x;
  if (threadIdx.x == 0) own = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    wait(&own);  // what another thread of the block writes after it
    out[block] = wait(flags + block, 1);
    __threadfence();
    atomicExch(flags + block + 1, block + 2);
  }
  if (threadIdx.x == 40) atomicExch(&own, 1);
}
"""


@pytest.mark.compiler
def test_waits_of_functions_for_later_blocks_and_for_threads_of_the_block_end() -> None:
    program = transpile.compile_text(IN_REVERSE)
    assert program.kernels["in_reverse"].tier == "fibers"
    flags, out = np.zeros(6, np.int32), np.zeros(5, np.int32)
    flags[0] = 1
    program.load()["in_reverse"][5, 64](flags, out)
    assert out.tolist() == [1, 2, 3, 4, 5]
