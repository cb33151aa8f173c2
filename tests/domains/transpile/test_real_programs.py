"""Whole programs as people have them: groups that meet, kernels as values, graphs, cuBLAS and Thrust, in one program that is built once."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from executables import executable

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

PROGRAM = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cublas_v2.h>
#include <nvToolsExt.h>
#include <cuda_fp8.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <cstdio>
namespace cg = cooperative_groups;
__device__ float sum_block(float v, float* s, const cg::thread_block& cta) {
  s[cta.thread_rank()] = v;
  cg::sync(cta);
  for (int d = cta.size() / 2; d > 0; d /= 2) { if (cta.thread_rank() < d) s[cta.thread_rank()] += s[cta.thread_rank() + d]; cta.sync(); }
  return s[0];
}
__global__ void grouped(const float* x, float* y, int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  __shared__ float s[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.f;
  float w = cg::reduce(warp, v, cg::plus<float>{}), m = cg::reduce(tile, v, cg::greater<float>());
  float t = tile.shfl_down(v, 2) + tile.shfl(v, 0) + warp.shfl_xor(v, 1);
  int votes = tile.any(v > 5) + 2 * warp.all(v >= 0) + tile.ballot(v > 3);
  float all = sum_block(v, s, block);
  if (i < n) y[i] = w + 10 * m + 100 * t + 1000 * votes + all + tile.meta_group_rank();
}
__global__ void whole(float* x, float* out) {
  cg::grid_group grid = cg::this_grid();
  x[grid.thread_rank()] = grid.thread_rank();
  grid.sync();
  out[grid.thread_rank()] = x[grid.size() - 1 - grid.thread_rank()];
}
struct Wide { double a, b, c; };
__global__ void active(int* count, int* where, Wide* wide, int n) {
  int i = threadIdx.x;
  if (i < n && i % 3 == 0) {
    cg::coalesced_group g = cg::coalesced_threads();
    int base = 0;
    if (g.thread_rank() == 0) base = atomicAdd(count, g.size());
    where[i] = g.shfl(base, 0) + g.thread_rank();
    wide[i] = g.shfl(Wide{i + 0.5, 2.0 * i, 1}, 1);
  }
  auto half = cg::tiled_partition<64>(cg::this_thread_block());
  where[64 + i] = cg::reduce(half, i, cg::plus<int>());
}
template <class T> __global__ void add(T* a, T by) { a[threadIdx.x] += by; }
__global__ void twice(float* a) { a[threadIdx.x] *= 2; }
template <float (*f)(float)> __device__ float both(float v, float more) { __syncthreads(); return f(v) + more; }
template <float (*f)(float)> __device__ float both(float v) { return both<f>(v, 1.f); }
__device__ float warp_sum(float v) { for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d); return v; }
template <class T> __global__ void overloaded(T* a) { a[threadIdx.x] = both<warp_sum>(a[threadIdx.x]); }
extern __shared__ float rows[][4];
__global__ void through_rows(float* a) { rows[threadIdx.x][1] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = rows[7 - threadIdx.x][1]; }
int main() {
  float *x, *y, *z; int *c, *w; Wide* wide;
  cudaMallocManaged(&x, 4096); cudaMallocManaged(&y, 4096); cudaMallocManaged(&z, 4096); cudaMallocManaged(&c, 4); cudaMallocManaged(&w, 4096);
  cudaMallocManaged(&wide, 4096);
  nvtxRangePushA("all");
  for (int i = 0; i < 256; ++i) x[i] = i % 7;
  grouped<<<2, 128>>>(x, y, 250);
  for (int i = 0; i < 250; ++i) printf("%g ", y[i]);
  void* arguments[] = {&x, &y};
  printf("\n%s", cudaGetErrorName(cudaLaunchCooperativeKernel((void*)whole, 4, 64, arguments)));
  for (int i = 0; i < 256; ++i) if (y[i] != 255 - i) printf(" wrong %d", i);
  *c = 0;
  active<<<1, 64>>>(c, w, wide, 60);
  printf("\n%d %d %d %g %g %d %d\n", *c, w[0], w[57], wide[0].a, wide[33].b, w[64], w[127]);
  for (int i = 0; i < 32; ++i) z[i] = i;
  void (*kernel)(float*, float) = &add<float>;
  kernel<<<1, 8>>>(z, 3);
  void* one[] = {&z};
  cudaLaunchKernel((const void*)twice, dim3(1), dim3(8), one, 0, 0);
  cudaStream_t stream; cudaGraph_t graph; cudaGraphExec_t exec;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  add<float><<<1, 8, 0, stream>>>(z, 1);
  cudaMemcpyAsync(z + 16, z, 32, cudaMemcpyDefault, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  printf("%g ", z[5]);
  cudaGraphLaunch(exec, stream); cudaGraphLaunch(exec, stream);
  printf("%g %g\n", z[5], z[21]);
  for (int i = 0; i < 32; ++i) z[i] = i;
  overloaded<<<1, 32>>>(z);
  printf("%g %g\n", z[0], z[31]);
  for (int i = 0; i < 8; ++i) z[i] = i;
  through_rows<<<1, 8, 8 * 16>>>(z);
  cublasHandle_t handle; cublasCreate(&handle);
  float alpha = 1, beta = 0;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 2, &alpha, z, 2, z + 4, 2, &beta, z + 8, 2);
  printf("%g %g %g %g\n", z[8], z[9], z[10], z[11]);
  thrust::device_vector<int> v(5);
  for (int i = 0; i < 5; ++i) v[i] = (i * 3) % 5;
  thrust::sort(v.begin(), v.end());
  printf("%d %d %d\n", (int)v[1], thrust::reduce(v.begin(), v.end(), 0, thrust::maximum<int>()), thrust::raw_pointer_cast(v.data())[3]);
  nvtxRangePop();
}
"""


def expected() -> list[float]:
    x = np.arange(256) % 7.0
    x[250:] = 0
    votes_of = [sum(int(v > 3) << k for k, v in enumerate(x[i // 8 * 8 : i // 8 * 8 + 8])) for i in range(250)]
    out = []
    for i in range(250):
        tile, warp, block = i // 8 * 8, i // 32 * 32, i // 128 * 128
        down = x[i + 2] if i % 8 < 6 else x[i]
        moved = down + x[tile] + x[i ^ 1]
        votes = (x[tile : tile + 8] > 5).any() + 2 * 1 + votes_of[i]
        out.append(
            x[warp : warp + 32].sum() + 10 * x[tile : tile + 8].max() + 100 * moved + 1000 * votes + x[block : block + 128].sum() + i % 32 // 8
        )
    return out


def test_a_program_with_groups_values_graphs_and_libraries() -> None:
    program = transpile.compile_text(PROGRAM, "all.cu", host=True)
    tiers = {name: info.tier for name, info in program.kernels.items()}
    assert {tiers[name] for name in ("whole", "active")} == {"fibers"}
    assert {tiers[name] for name in ("grouped", "add", "twice", "overloaded", "through_rows")} <= {"loops", "vectors"}
    done = subprocess.run([executable(program.source)], capture_output=True, text=True, timeout=60)
    grouped, whole, *rest = done.stdout.splitlines()
    assert [float(word) for word in grouped.split()] == expected(), done.stderr
    assert whole == "cudaSuccess"
    assert rest == ["20 0 19 3.5 72 2016 2016", "16 18 18", "497 497", "26 22 14 12", "1 4 3"]
