"""Launches that a GPU refuses fail here too, and say why."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from executables import executable

from warpwright import cli
from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = r"""
#include <cstdio>
__global__ void last(int* out, int n) { extern __shared__ int s[]; s[n - 1] = 7; __syncthreads(); *out = s[n - 1]; }
static int asked(int bytes) {
  int* out; int seen = 0;
  cudaMalloc(&out, sizeof(int)); cudaMemset(out, 0, sizeof(int));
  last<<<1, 1, bytes>>>(out, bytes / 4);
  const bool good = cudaGetLastError() == cudaSuccess;
  cudaMemcpy(&seen, out, sizeof(int), cudaMemcpyDeviceToHost);
  return good ? seen : -1;
}
int main(int count, char**) {
  const int attribute = cudaFuncSetAttribute(last, cudaFuncAttributeMaxDynamicSharedMemorySize, count > 1 ? 400000 : 65536);
  cudaGetLastError();
  std::printf("%d %d %d\n", attribute, asked(49152), asked(65536));
}
"""


def test_dynamic_shared_memory_beyond_48_kib_must_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(PROGRAM)
    assert cli.main(["transpile", str(tmp_path / "app.cu"), "-o", str(tmp_path / "app.cpp"), "--tier", "fibers"]) == cli.DONE
    program = executable((tmp_path / "app.cpp").read_text())

    def said(*arguments: str) -> str:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60).stdout

    assert said() == "0 7 7\n"
    assert said("more") == "1 7 -1\n"


def test_from_python_a_block_may_have_all_that_a_gpu_has() -> None:
    kernel = transpile.compile_text(PROGRAM.split("static int asked")[0]).load()["last"]
    out = np.zeros(1, np.int32)
    kernel[1, 1, 232448](out, 1)
    assert out[0] == 7
    with pytest.raises(transpile.LaunchFailed, match="at most 232448 bytes of dynamic shared memory, saw 400000"):
        kernel[1, 1, 400000](out, 1)


def test_few_threads_with_long_loops_are_shared_out() -> None:
    """Eight blocks of 64 threads are worth a second thread of the machine when they run loops, not when they add once."""
    text = "__global__ void k(float* x, int n) { float s = 0; %s s += x[i]; x[blockIdx.x * blockDim.x + threadIdx.x] = s; }"
    long = transpile.compile_text(text % "for (int i = 0; i < n; ++i)").source
    short = transpile.compile_text(text % "for (int i = 0; i < 4; ++i)").source
    assert "}, 16);" in long and "}, 16);" not in short
