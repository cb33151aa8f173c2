"""Kernels that launch kernels: order, arguments, shared memory of the same kernel, waiting, and what is refused."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from executables import executable

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = r"""
#include <cstdio>
__global__ void add(int* a, int by) { a[threadIdx.x] += by; }
template <class T> __global__ void times(T* a, T by) { a[threadIdx.x] *= by; }
__device__ void both(int* a, int by) { add<<<1, 4>>>(a, by); times<int><<<1, 4>>>(a, 2); }
__global__ void parent(int* a) { if (threadIdx.x == 0) { a[0] = 100; both(a, blockIdx.x + 1); } }
// Each level sums its own shared memory after it launched the next, which is the same kernel.
__global__ void deep(int* a, int depth) {
  __shared__ int s[32];
  s[threadIdx.x] = depth;
  __syncthreads();
  if (threadIdx.x == 0 && depth > 0) deep<<<1, 32>>>(a, depth - 1);
  if (threadIdx.x == 0 && depth == 2) { cudaDeviceSynchronize(); a[3] = a[1]; }
  __syncthreads();
  atomicAdd(&a[1], s[(threadIdx.x + 1) % 32]);
}
__global__ void sort(int* a, int left, int right) {
  int l = left, r = right, pivot = a[(left + right) / 2];
  while (l <= r) {
    while (a[l] < pivot) ++l;
    while (a[r] > pivot) --r;
    if (l <= r) { int v = a[l]; a[l++] = a[r]; a[r--] = v; }
  }
  cudaStream_t s;
  if (left < r) { cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); sort<<<1, 1, 0, s>>>(a, left, r); cudaStreamDestroy(s); }
  if (l < right) sort<<<1, 1>>>(a, l, right);
}
int main() {
  int* a;
  cudaMallocManaged(&a, 4096);
  parent<<<2, 32>>>(a);
  cudaDeviceSynchronize();
  printf("%d %d\n", a[0], a[1]);
  for (int i = 0; i < 8; ++i) a[i] = 0;
  deep<<<1, 32>>>(a, 4);
  cudaDeviceSynchronize();
  printf("%d %d\n", a[1], a[3]);
  for (int i = 0; i < 200; ++i) a[i] = (i * 37) % 101;
  sort<<<1, 1>>>(a, 0, 199);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 1; i < 200; ++i) wrong += a[i - 1] > a[i];
  printf("%d %s\n", wrong, cudaGetErrorName(cudaGetLastError()));
}
"""


def test_a_program_whose_kernels_launch_kernels() -> None:
    program = transpile.compile_text(PROGRAM, "nested.cu", host=True)
    tiers = {name: info.tier for name, info in program.kernels.items()}
    assert tiers["parent"] == tiers["deep"] == tiers["sort"] == "fibers"
    assert "fibers" not in (tiers["add"], tiers["times"])
    done = subprocess.run([executable(program.source)], capture_output=True, text=True, timeout=60)
    # A block ends before what it launches begins: level 2 sees what levels 4 and 3 added, and level 1, which it waits for.
    levels = 32 * (4 + 3 + 2 + 1)
    assert done.stdout.splitlines() == ["204 8", f"{levels} {32 * (4 + 3 + 1)}", "0 cudaSuccess"], done.stdout + done.stderr


def test_launches_by_kernels_from_python() -> None:
    text = PROGRAM[: PROGRAM.index("int main()")]
    loaded = transpile.compile_text(text, "nested.cu").load()
    a = np.random.default_rng(0).integers(0, 1000, 300, dtype=np.int32)
    wanted = np.sort(a)
    loaded["sort"][1, 1](a, 0, 299)
    assert np.array_equal(a, wanted)


def test_tail_launches_and_sanitized_ones_are_refused_at_their_place() -> None:
    tail = "__global__ void a() {}\n__global__ void b() {\n  a<<<1, 1, 0, cudaStreamTailLaunch>>>();\n}\n"
    plain = tail.replace(", 0, cudaStreamTailLaunch", "")
    for text, settings in ((tail, {"host": True}), (plain, {"sanitize": True}), (plain, {"lockstep": True})):
        with pytest.raises(transpile.Refusal) as caught:
            transpile.compile_text(text, "x.cu", **settings)
        assert (caught.value.file, caught.value.line, caught.value.code) == ("x.cu", 3, "dynamic-parallelism")
