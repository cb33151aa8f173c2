"""Whole programs of several sources, and what small applications use beside kernels."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from executables import unit

from warpwright import cli, native

KERNELS = r"""
#include <cstdio>
#include <cuComplex.h>
#ifdef NEVER_DEFINED
#include <no_such_header.h>
#endif
#include "shared.h"
__host__ __device__ int plus_one(int v) { return v + 1; }
__device__ __noinline__ int twice(int v) { return 2 * v + plus_one(-1); }
__global__ void scaled(int* x, int n, int index, int launch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  index += 1;
  if (i < n) x[i] = twice(x[i]) + index + launch;
}
__global__ void permuted(int* x) {
  int order[] = {3, 2, 1, 0}, kept[4];
  for (int k = 0; k < 4; ++k) kept[k] = x[4 * threadIdx.x + order[k]];
  __syncthreads();
  for (int k = 0; k < 4; ++k) x[4 * threadIdx.x + k] = kept[order[k]] + order[k];
}
__global__ void reduced(int* x) {
  static __shared__ int buffer[64];
  buffer[threadIdx.x] = x[threadIdx.x];
  int nt = blockDim.x;
  for (nt /= 2, __syncthreads(); nt > 0; nt /= 2, __syncthreads())
    if (threadIdx.x < nt) buffer[threadIdx.x] += buffer[threadIdx.x + nt];
  if (threadIdx.x == 0) *x = buffer[0];
}
template <class T> __global__ void punned(const T* x, T* y, T by) {
  uint4 all = reinterpret_cast<const uint4*>(x)[threadIdx.x], made;
  for (int k = 0; k < 16 / sizeof(T); ++k) reinterpret_cast<T*>(&made)[k] = reinterpret_cast<const T*>(&all)[k] * by;
  reinterpret_cast<uint4*>(y)[threadIdx.x] = made;
}
void run_punned(const float* x, float* y) { punned<float><<<1, 16>>>(x, y, 3.f); }
__device__ int scan_warp(int v, volatile int* s) {
  int i = 32 + threadIdx.x;
  s[threadIdx.x] = 0;
  s[i] = v;
  s[i] += s[i - 1]; s[i] += s[i - 2]; s[i] += s[i - 4]; s[i] += s[i - 8]; s[i] += s[i - 16];
  return s[i];
}
__device__ int scan_block(int v, int* s) { v = scan_warp(v, s); __syncthreads(); return v; }
__global__ void scanned(int* x) { __shared__ int s[64]; x[threadIdx.x] = scan_block(x[threadIdx.x], s); }
template <class T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
template <template <class> class Op, class T> __device__ T together(T v) {
  __shared__ T kept[32];
  kept[threadIdx.x] = v;
  __syncthreads();
  T all = T(0);
  for (int k = 0; k < 32; ++k) all = Op<T>()(all, kept[k]);
  return all;
}
template <class V> __global__ void summed(V* x) {
  V sum = together<Sum, V>(x[threadIdx.x]);
  const V more = __logf(sum) + sum * V(0.5);
  x[threadIdx.x] = more > sum ? sum : -more;
}
void run_summed(float* x) { summed<float><<<1, 32>>>(x); }
__device__ float4 expf(float4 v) { v.x = expf(v.x); return v; }
__global__ void own_function(float* x, const float4* v) {
  if (threadIdx.x >= 8) return;
  extern __shared__ float kept[];
  kept[threadIdx.x] = expf(v[threadIdx.x]).x;
  x[threadIdx.x] = isnan(kept[threadIdx.x]) || signbit(kept[threadIdx.x]) ? 0.f : kept[threadIdx.x];
}
__global__ void words(unsigned* x) {
  x[threadIdx.x] = __vadd4(x[threadIdx.x], 0x01ff0203u) ^ __vmaxs2(0x8000ffffu, 0x00010002u) ^ __vcmpgtu4(0x01020304u, 0x02020202u);
}
__global__ void complex_numbers(cuFloatComplex* z) { *z = cuCdivf(cuCmulf(*z, *z), make_cuFloatComplex(0.f, 2.f)); }
__global__ void counted(int* x) { if (__nv_atomic_fetch_add(x, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) == 0) atomicMax_system(x + 1, 7); }
__global__ void pitched(cudaPitchedPtr p, int width) {
  float* row = (float*)((char*)p.ptr + blockIdx.x * p.pitch);
  if (threadIdx.x < width) row[threadIdx.x] = threadIdx.x + 10 * blockIdx.x;
}
"""

MAIN = r"""
#include <cstdio>
#include <functional>
#include "shared.h"
#define CHECK(call) do { if ((call) != cudaSuccess) { printf("failed at %d\n", __LINE__); return 1; } } while (0)
int main() {
  int* x;
  CHECK(cudaMallocManaged(&x, 256 * sizeof(int)));
  for (int i = 0; i < 256; ++i) x[i] = i;
  CHECK(cudaFuncSetCacheConfig(scaled, cudaFuncCachePreferL1));
  scaled<<<2, 128>>>(x, 256, 1, 5);
  CHECK(cudaDeviceSynchronize());
  printf("%d %d\n", x[0], x[255]);
  permuted<<<1, 64>>>(x);
  printf("%d %d\n", x[0], x[255]);
  reduced<<<1, 64>>>(x);
  printf("%d\n", x[0]);
  float* f; CHECK(cudaMallocManaged((void**)&f, 128 * sizeof(float)));
  for (int i = 0; i < 64; ++i) f[i] = i;
  run_punned(f, f + 64);
  CHECK(cudaDeviceSynchronize());
  printf("%g %g\n", f[64 + 1], f[64 + 63]);
  x[0] = x[1] = 0;
  counted<<<4, 32>>>(x);
  printf("%d %d\n", x[0], x[1]);
  cudaPitchedPtr p; int low, high, pools;
  CHECK(cudaMalloc3D(&p, make_cudaExtent(5 * sizeof(float), 3, 1)));
  pitched<<<3, 32>>>(p, 5);
  CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
  CHECK(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0));
  printf("%g %d %d\n", *(float*)((char*)p.ptr + 2 * p.pitch + 4 * sizeof(float)), low >= high, pools);
  own_function<<<1, 32, 64>>>(f, (const float4*)f);
  words<<<1, 1>>>((unsigned*)x);
  f[8] = 1; f[9] = 1;
  complex_numbers<<<1, 1>>>((cuFloatComplex*)(f + 8));
  CHECK(cudaDeviceSynchronize());
  printf("%d %x %g %g\n", f[0] == 1.f, x[0], f[8], f[9]);
  for (int i = 0; i < 32; ++i) x[i] = i, f[i] = 0.25f;
  scanned<<<1, 32>>>(x);
  run_summed(f);
  CHECK(cudaDeviceSynchronize());
  printf("%d %d %.4f\n", x[4], x[31], f[3]);
  x[1] = 7;
  return helper(x[1]) - 8;
}
"""

HEADER = r"""
#pragma once
#include <cuda_runtime.h>
#include <cuComplex.h>
__global__ void scaled(int* x, int n, int index, int launch);
__global__ void permuted(int* x);
__global__ void reduced(int* x);
__global__ void counted(int* x);
__global__ void pitched(cudaPitchedPtr p, int width);
void run_punned(const float* x, float* y);
__global__ void own_function(float* x, const float4* v);
__global__ void words(unsigned* x);
__global__ void scanned(int* x);
void run_summed(float* x);
__global__ void complex_numbers(cuFloatComplex* z);
__host__ __device__ int plus_one(int v);
int helper(int v);
"""

HOST = r"""
#include "shared.h"
int helper(int v) { void* p; return cudaMalloc(&p, 16) == cudaSuccess && cudaFree(p) == cudaSuccess ? plus_one(v) : 0; }
"""


@pytest.mark.compiler
@pytest.mark.parametrize("tier", ["fibers", "vectors"])
def test_a_program_of_several_sources(tmp_path: Path, tier: str) -> None:
    (tmp_path / "shared.h").write_text(HEADER)
    units = []
    for name, text in (("kernels.cu", KERNELS), ("main.cu", MAIN), ("host.cu", HOST)):
        (tmp_path / name).write_text(text)
        out = (tmp_path / name).with_suffix(".cpp")
        assert cli.main(["transpile", str(tmp_path / name), "-o", str(out), "--tier", tier]) == cli.DONE
        units.append(unit(out.read_text(), "-O2"))
    subprocess.run([native.compiler()[0], "-fopenmp", *units, "-o", str(tmp_path / "app")], check=True, timeout=100)
    done = subprocess.run([str(tmp_path / "app")], capture_output=True, text=True, timeout=60)
    x = [2 * i + 7 for i in range(256)]
    mixed = [x[4 * (i // 4) + i % 4] + 3 - i % 4 for i in range(256)]
    assert done.stdout.splitlines() == [
        f"{x[0]} {x[255]}", f"{mixed[0]} {mixed[255]}", f"{sum(mixed[:64])}", "3 189", "128 7", "24 1 1", "1 1fefd7e 1 0", "10 496 -6.0794",
    ]  # fmt: skip
    assert done.returncode == 0
