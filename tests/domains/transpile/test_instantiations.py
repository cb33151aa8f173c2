"""Kernel templates that are instantiated or specialised explicitly."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from executables import FLAGS, PLAIN

from warpwright.domains import transpile

KERNELS = """
template <typename T> __device__ T reversed(T* s, T v, int i) { s[i] = v; __syncthreads(); return s[31 - i]; }
template <typename T, int N> __global__ void k(T* y, int n) { __shared__ T s[32]; int i = threadIdx.x; T v = reversed(s, y[i], i); y[i] = v + N + n; }
template __device__ float reversed<float>(float*, float, int);
template __global__ void k<float, 4>(float* y, int n);
template __global__ void k<int, 2>(int*, int);
"""

DEFINES = """
template <typename T> __global__ void k(T* y, int n) { int i = threadIdx.x; if (i < n) y[i] += 1; }
template <typename T> __global__ void special(T* y) { y[threadIdx.x] += 1; }
template <> __global__ void special<int>(int* y) { y[threadIdx.x] += 100; }
template __global__ void k<float>(float* y, int n);
void both(int* y) { special<int><<<1, 4>>>(y); }
"""

LAUNCHES = """
#include <cstdio>
template <typename T> __global__ void k(T* y, int n);
void both(int* y);
int main() { float y[4] = {1, 2, 3, 4}; int z[4] = {1, 2, 3, 4}; k<float><<<1, 4>>>(y, 4); both(z); printf("%g %g %d %d", y[0], y[3], z[0], z[3]); }
"""


@pytest.mark.compiler
def test_an_explicit_instantiation_is_offered_and_builds_beside_a_function_that_was_dropped() -> None:
    program = transpile.compile_text(KERNELS)
    assert list(program.exports) == ["k<float, 4>", "k<int, 2>"] and program.kernels["k"].tier != "fibers"
    y = np.arange(32, dtype=np.float32)
    program.load(PLAIN)["k<float, 4>"][1, 32](y, 1)
    assert np.array_equal(y, np.arange(32, dtype=np.float32)[::-1] + 5)


@pytest.mark.compiler
def test_instances_are_launched_from_another_source_and_a_specialisation_is_what_runs(tmp_path: Path) -> None:
    files = []
    for name, text in (("defines", DEFINES), ("launches", LAUNCHES)):
        file = tmp_path / f"{name}.cpp"
        file.write_text(transpile.compile_text(text, host=True).source)
        files.append(str(file))
    binary = str(tmp_path / "program")
    subprocess.run(["g++", *FLAGS, *files, "-o", binary], check=True)
    assert subprocess.run([binary], capture_output=True, text=True, check=True).stdout == "2 5 101 104"
