"""No program whose kernel failed ends with exit code 0, whether it asks or not."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from executables import executable

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = """
#include <cassert>
#include <cstdio>
#include <cstdlib>
__global__ void k(int n) { assert(n > 0); }
int main(int argc, char** argv) {
  const int how = atoi(argv[1]);
  k<<<1, how == 1 ? 2048 : 1>>>(how == 2 ? 0 : 1);
  if (how == 3) return cudaDeviceSynchronize() != cudaSuccess;
  puts("done");
}
"""


def test_failures_that_nobody_asks_for() -> None:
    program = executable(transpile.compile_text(PROGRAM, "all.cu", host=True).source)
    seen = [subprocess.run([program, str(how)], capture_output=True, text=True, timeout=60) for how in range(4)]
    assert [done.returncode for done in seen] == [0, 1, 1, 0]
    assert all(done.stdout == "done\n" for done in seen[:3])
    assert "1 to 1024 threads" in seen[1].stderr
    assert "assertion `n > 0'" in seen[2].stderr
