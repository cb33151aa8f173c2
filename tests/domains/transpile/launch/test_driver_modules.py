"""Modules of the driver's interface and NVRTC: a host program that loads kernels, as a file and as bytes, and one that compiles its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from executables import executable

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

KERNELS = r"""
static __constant__ float factors[2 * (1 + 1)];
struct Pair { float a, b; };
extern "C" __global__ void scale(float* x, int n, Pair p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * p.a + p.b + factors[i % 4];
}
template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
"""

HOST = r"""
#include <cuda.h>
#include <nvrtc.h>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
struct Pair { float a, b; };
static void show(CUdeviceptr x) { float h[6]; cuMemcpyDtoH(h, x, sizeof h); for (float v : h) printf("%g ", v); printf("\n"); }
static int run(CUmodule module) {
  CUfunction f, none; CUdeviceptr x, factors; size_t bytes;
  float h[6] = {0, 1, 2, 3, 4, 5}, c[4] = {100, 200, 300, 400};
  int n = 5; Pair p = {2, 0.5f};
  if (cuModuleGetFunction(&f, module, "scale")) return 1;
  printf("%d ", cuModuleGetFunction(&none, module, "nothing"));
  cuModuleGetGlobal(&factors, &bytes, module, "factors"); printf("%zu\n", bytes); cuMemcpyHtoD(factors, c, bytes);
  cuMemAlloc(&x, sizeof h); cuMemcpyHtoD(x, h, sizeof h);
  void* arguments[] = {&x, &n, &p};
  if (cuLaunchKernel(f, 2, 1, 1, 4, 1, 1, 0, 0, arguments, nullptr)) return 2;
  show(x);
  struct { CUdeviceptr x; int n; Pair p; } packed = {x, 2, {0, 7}};
  size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  if (cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, 0, nullptr, extra)) return 3;
  show(x);
  printf("%d\n", cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, 0, arguments, nullptr));
  return 0;
}
int main(int argc, char** argv) {
  CUcontext context, now; CUmodule module; cuInit(0); cuCtxCreate(&context, 0, 0); cuCtxGetCurrent(&now); printf("%d\n", now == context);
  if (cuModuleLoad(&module, argv[1])) return 4;
  if (int wrong = run(module)) return wrong;
  std::ifstream in(argv[1], std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (cuModuleLoadData(&module, image.data())) return 5;
  printf("%d\n", cuModuleLoadData(&module, ".version 8.0 // PTX"));
  nvrtcProgram program; const char* options[] = {"--gpu-architecture=compute_80", "-DBY=3"};
  const char* text = "#include \"step.h\"\ntemplate <int n> __global__ void add(float* x) { x[threadIdx.x] += STEP; }";
  nvrtcCreateProgram(&program, text, "add.cu", 0, nullptr, nullptr);
  nvrtcAddNameExpression(program, "add<2>");
  if (nvrtcCompileProgram(program, 2, options)) {
    size_t n; nvrtcGetProgramLogSize(program, &n);
    std::string log(n, ' '); nvrtcGetProgramLog(program, &log[0]); puts(log.c_str());
    return 6;
  }
  size_t n; const char* name; CUfunction f; CUdeviceptr x; float h[6] = {1, 2, 3, 4, 5, 6};
  nvrtcGetPTXSize(program, &n); std::string ptx(n, ' '); nvrtcGetPTX(program, &ptx[0]); nvrtcGetLoweredName(program, "add<2>", &name);
  if (cuModuleLoadDataEx(&module, ptx.data(), 0, 0, 0) || cuModuleGetFunction(&f, module, name)) return 7;
  cuMemAlloc(&x, sizeof h); cuMemcpyHtoD(x, h, sizeof h);
  void* arguments[] = {&x};
  cuLaunchKernel(f, 1, 1, 1, 6, 1, 1, 0, 0, arguments, nullptr); cuCtxSynchronize(); show(x);
  nvrtcDestroyProgram(&program);
  nvrtcCreateProgram(&program, "__global__ void broken() { undeclared(); }", "broken.cu", 0, nullptr, nullptr);
  printf("%s\n", nvrtcGetErrorString(nvrtcCompileProgram(program, 0, nullptr)));
}
"""


def test_modules_and_code_made_at_run_time(tmp_path: Path) -> None:
    module = tmp_path / "kernels.fatbin"
    shutil.copyfile(transpile.compile_text(KERNELS, instances=["twice<float>"]).build(), module)
    program = executable(transpile.compile_text(HOST, "host.cpp", host=True).source, "-Wl,--no-as-needed,-ldl")
    (tmp_path / "step.h").write_text("#define STEP (n * BY)\n")  # in the folder where the program runs
    environment = {**os.environ, "WARPWRIGHT": f"{sys.executable} -m warpwright"}
    done = subprocess.run([program, str(module)], capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)
    assert not done.returncode, done.stdout + done.stderr
    scaled = ["500 16", "100.5 202.5 304.5 406.5 108.5 5", "107 207 304.5 406.5 108.5 5", "1"]
    assert [line.strip() for line in done.stdout.splitlines()] == ["1", *scaled, "200", "7 8 9 10 11 12", "NVRTC_ERROR_COMPILATION"]
    assert "1 to 1024 threads" in done.stderr
