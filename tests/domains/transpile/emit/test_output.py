"""The text that is written: golden, with the source's names, comments and lines; whole programs; the command."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from executables import executable

from warpwright import cli
from warpwright.domains import transpile
from warpwright.domains.transpile.emit import program_text

GOLDEN = Path(__file__).parents[3] / "golden" / "transpile"

PROGRAM = r"""
#include <cstdio>
#include <vector>
#include "scale.cuh"
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); return 1; } } while (0)
__constant__ int shift[2];
__global__ void add(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = scaled(x[i]) + shift[i % 2];
}
template <int N> __global__ void last(const int* x, int* y) { if (threadIdx.x == 0) *y = x[N - 1]; }
int main() {
  const int n = 1000;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *x, *y, answer, by[2] = {1, 10};
  CHECK(cudaMalloc(&x, n * sizeof(int)));
  CHECK(cudaMalloc((void**)&y, sizeof(int)));
  CHECK(cudaMemcpyToSymbol(shift, by, sizeof by));
  cudaStream_t stream;
  cudaEvent_t begun, ended;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&begun)); CHECK(cudaEventCreate(&ended));
  CHECK(cudaMemcpyAsync(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
  cudaEventRecord(begun, stream);
  dim3 block(128), grid((n + block.x - 1) / block.x);
  add<<<grid, block, 0, stream>>>(x, n);
  CHECK(cudaGetLastError());
  last<n><<<1, 32>>>(x, y);
  cudaEventRecord(ended, stream);
  CHECK(cudaEventSynchronize(ended));
  float ms = -1;
  cudaEventElapsedTime(&ms, begun, ended);
  CHECK(cudaMemcpy(&answer, y, sizeof answer, cudaMemcpyDeviceToHost));
  printf("%d %d\n", answer, ms >= 0);
  cudaFree(x); cudaFree(y);
  return 0;
}
"""


def test_output_is_as_reviewed(golden: Callable[[str, str], None]) -> None:
    program = transpile.compile_text((GOLDEN / "tiled.cu").read_text(), "tiled.cu")
    head, _, body = program.source.partition("\n// ---- tiled.cu ----")
    kernels = "\n".join(line for line in head.splitlines() if line.startswith("// kernel"))
    golden("transpile/tiled.cpp.txt", f"{kernels}\n{body.partition('// ---- entries')[0]}")


def test_every_region_names_its_source_line() -> None:
    source = transpile.compile_text((GOLDEN / "tiled.cu").read_text(), "tiled.cu").source
    for line in (2, 3, 4, 7, 8, 9, 10, 11, 13, 14, 15, 16, 18, 21, 22, 23, 24, 25):
        assert re.search(rf"line {line}\b", source.partition("---- tiled.cu ----")[2]), line


@pytest.mark.compiler
def test_a_whole_program_runs_unmodified(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scale.cuh").write_text("#pragma once\n__device__ inline int scaled(int v) { return 2 * v; }\n")
    (tmp_path / "app.cu").write_text(PROGRAM)
    out = tmp_path / "app.cpp"
    assert cli.main(["transpile", str(tmp_path / "app.cu"), "-o", str(out), "--json"]) == cli.DONE
    told = json.loads(capfd.readouterr().out)
    assert [(k["kernel"], k["tier"]) for k in told["kernels"]] == [("add", "vectors"), ("last", "vectors")]
    done = subprocess.run([executable(out.read_text())], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{2 * 999 + 10} 1\n")


def test_the_command_says_what_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["transpile", str(tmp_path / "none.cu"), "--json"]) == cli.WRONG_USE
    assert "expected a CUDA source" in capfd.readouterr().out
    (tmp_path / "bad.cu").write_text('__global__ void k() {\n  asm("nop;");\n}\n')
    assert cli.main(["transpile", str(tmp_path / "bad.cu"), "--json"]) == cli.NOT_PASSED
    assert "bad.cu:2: device code has inline PTX that is not of the common kind [ptx]" in capfd.readouterr().out


def test_a_function_that_is_also_a_value_is_not_always_inlined() -> None:
    """g++ -O1 refuses a call by a pointer of what it always has to inline (llm.c's softmax_forward, whose reduction is handed on)."""
    text = """
__device__ float more(float a, float b) { return a > b ? a : b; }
__device__ float twice(float a) { return 2 * a; }
template <class F> __device__ float of_all(const float* x, F f) { float m = x[0]; for (int i = 1; i < 4; ++i) m = f(m, x[i]); return m; }
__global__ void k(const float* x, float* y) { y[threadIdx.x] = twice(more(x[threadIdx.x], 0)) + of_all(x, more); }
__global__ void plain(const float* x, float* y) { y[threadIdx.x] = twice(more(x[threadIdx.x], 0)); }
"""
    source = transpile.compile_text(text).source
    assert "always_inline)) float twice" in source and "always_inline)) float more" not in source


ASKING = r"""ww::sin_f(x) | ww::any_sin(x) | cuFloatComplex c | __fadd_rd(a, b) | __vadd2 (a, b) | ww::lanes_sum(x) | ww::tree_sum(x) | ww::widened(x)
ww::uints v | ww::counts_of(x) | ww::each_inside(x) | ww::from_device(x) | ww::launch_any(f) | cudaLaunchKernel(f) | cudaLaunchCooperativeKernel(f)
__nv_fp8_e4m3 v | cublasSgemm(h) | cublasSgetrfBatched(h) | CUBLAS_SIDE_LEFT | cublasLtMatmul(h) | CUBLASLT_ORDER_ROW | cub\n::BlockReduce<float> r
cub::DeviceScan s | cub\n:: \n DeviceScan s | cuda::\nstd::array a | using\n namespace cub
using namespace  cub | namespace\ncub { | cuda:: std::array a | curandGenerator_t g | thrust\n\n ::sort(x)
nvtxRangePush(n) | __cu_demangle(n) | cooperative_groups::sync(g) | cuda::barrier b | namespace cuda {
__pipeline_commit() | curandState s | curandStateSobol32 s
curandDirectionVectors32_t v | wmma::fragment f | nvcuda::wmma | cudaMalloc(p) | int main\n(int n) | cuMemAlloc(p) | CUDART_CB f | cuCaddf(a, b)
CUmodule m | cuMemAddressReserve(p) | CUmemAllocationProp p | nvrtcCompileProgram(p) | cudaGraphLaunch(g) | cudaStreamBeginCapture(s) | CUarray a
tex2D(t, x) | texture\n<float> t | cudaTextureObject_t t | cudaSurfaceObject_t s | surf2Dread(s) | textureReference r | cudaError_t e
ww::add_carry<unsigned, false, true>(a, b) | __half2uint_ru(h) | __hbgt2(a, b) | h2exp2(a) | cublasZgemm(h) | cublasDtrmm(h) | cublasDotcEx(h)
__int2float_ru(i) | __funnelshift_lc(a, b, c) | erfcinvf(x) | normcdfinv(x) | cyl_bessel_i0(x) | rnorm4d(a, b, c, d) | ullmax(a, b)
THRUST_VERSION"""
"""Texts that ask for each part of the runtime."""


def test_parts_of_the_runtime_are_found_by_the_lines_that_may_ask() -> None:
    asked = set()
    for text in [*re.split(r" \| |\n", ASKING), "float a = 2"]:
        whole = f"int before;\n{text};\nint after;\n".replace("\\n", "\n")
        wanted = [part for part, pattern in program_text._OPTIONAL.items() if re.search(pattern, whole)]
        assert program_text.parts_of(whole) == wanted, text
        asked.update(wanted)
    assert asked == program_text._OPTIONAL.keys()


def test_the_command_that_is_told_is_the_one_in_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(float* x) { x[threadIdx.x] = 1.0f; }\n")
    assert cli.main(["transpile", str(tmp_path / "k.cu"), "-o", str(tmp_path / "k.cpp"), "--no-check"]) == cli.DONE
    command = capsys.readouterr().out.partition("build it with: ")[2].removesuffix(f" {tmp_path / 'k.cpp'}\n")
    assert command.startswith("c++ ") and (tmp_path / "k.cpp").read_text().partition("\n")[0].endswith(f": {command}")
