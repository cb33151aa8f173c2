"""Variables of the device belong to their source, as nvcc has them; relocatable device code shares them by `extern`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from executables import unit

from warpwright import cli, native
from warpwright.domains.transpile.frontend import source as reading
from warpwright.domains.transpile.frontend.text import own_variables

HEADER = """
__constant__ float taps[3] = {1, 2, 3};
__device__ int seen, other[2] = {4, 5};
__device__ __align__(8) float2 pair;
__device__ alignas(16) float4 wide = {1, 2, 3, 4};
__constant__ __align__(16) int lanes[2] = {1, 2};
alignas(16) __device__ int second_of[2] = {3, 4};
"""
FIRST = """
#include "shared.cuh"
extern __device__ int common;
__device__ int own() { return (int)wide.w + lanes[1] + second_of[1] - 10; }
__global__ void first(float* x) { x[threadIdx.x] *= taps[1]; atomicAdd(&seen, 1); if (threadIdx.x == 0) common += other[1] + own(); }
void run_first(float* x) { first<<<1, 4>>>(x); cudaDeviceSynchronize(); }
int seen_first() { int n; cudaMemcpyFromSymbol(&n, seen, sizeof n); return n; }
"""
MAIN = """
#include <cstdio>
#include "shared.cuh"
__device__ int common = 2;
float of_host();
void run_first(float* x);
int seen_first();
__global__ void second(float* x) { x[threadIdx.x] += taps[1]; }
int main() {
  float* x; cudaMallocManaged(&x, 16);
  for (int i = 0; i < 4; ++i) x[i] = i;
  const float given[3] = {5, 6, 7};
  cudaMemcpyToSymbol(taps, given, sizeof given);
  run_first(x);
  second<<<1, 4>>>(x);
  cudaDeviceSynchronize();
  int n, m; cudaMemcpyFromSymbol(&n, seen, sizeof n); cudaMemcpyFromSymbol(&m, common, sizeof m);
  printf("%g %d %d %d %g", x[3], n, seen_first(), m, of_host());
}
"""
HOST = "float taps[3] = {0, 9, 0}; float of_host() { return taps[1]; }"


@pytest.mark.compiler
def test_sources_have_variables_of_one_name_and_the_host_too(tmp_path: Path) -> None:
    (tmp_path / "shared.cuh").write_text(HEADER)
    units = [unit(HOST)]
    for name, text in (("first.cu", FIRST), ("main.cu", MAIN)):
        (tmp_path / name).write_text(text)
        out = (tmp_path / name).with_suffix(".cpp")
        assert cli.main(["transpile", str(tmp_path / name), "-o", str(out), "--no-check"]) == cli.DONE
        units.append(unit(out.read_text()))
    subprocess.run([native.compiler()[0], "-fopenmp", *units, "-o", str(tmp_path / "app")], check=True, timeout=100)
    done = subprocess.run([str(tmp_path / "app")], capture_output=True, text=True, timeout=60)
    assert done.stdout == "12 0 4 7 9"  # the source's own taps; what second saw; four threads; 2 + 5 across sources; the host's


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("__device__ int a, b[3] = {1, 2};", ["a", "b"]),
        ("__constant__ const float* p = nullptr; __managed__ std::array<int, 3> q{1};", ["p", "q"]),
        ("__constant__ const float c[2] = {1, 2}; static __device__ int d; __device__ constexpr int e = 1; int f;", []),
        ("extern __device__ int g; __device__ int g = 2; namespace n { __device__ int h; } __device__ int k(int x) { return x; }", []),
        ("template <class T> __device__ T l = 1; struct S { __device__ int m(); }; __device__ int (*o)(int);", []),
    ],
)
def test_which_variables_are_made_a_sources_own(text: str, names: list[str]) -> None:
    made = own_variables.edits(reading.read(text))
    assert [name for edit in made for name in re.findall(r"WW_NAMED\((\w+)", edit.text)] == names
