"""The sanitizer on a whole program whose kernel is declared before the host code that launches it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from executables import executable

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = """
#include <cstdio>
__global__ void product(const float*, float*);
int main() {
  float *a, *c;
  cudaMallocManaged(&a, 64 * 4); cudaMallocManaged(&c, 64 * 4);
  for (int i = 0; i < 64; ++i) a[i] = 1;
  product<<<1, dim3(8, 8)>>>(a, c);
  cudaDeviceSynchronize();
}
__global__ void product(const float* a, float* c) {
  __shared__ float s[8][8];
  const int row = threadIdx.y, col = threadIdx.x;
  s[row][col] = a[row * 8 + col];
  __syncthreads();
  float sum = 0;
  for (int e = 0; e <= 8; ++e)
    sum += s[row][e];
  c[row * 8 + col] = sum;
}
"""


def test_a_row_too_far_is_told_with_its_line() -> None:
    program = executable(transpile.compile_text(PROGRAM, "all.cu", host=True, sanitize=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert "line 18" in done.stdout + done.stderr, done.stdout + done.stderr
