"""CUB in kernels and for a whole device, and libcu++: against numpy."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from executables import executable

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

KERNELS = r"""
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/std/limits>
struct Prefix { int running; __device__ int operator()(int all) { int old = running; running += all; return old; } };
__device__ int block_sum(int v) {
  typedef cub::BlockReduce<int, 64> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  return Reduce(storage).Sum(v);
}
__global__ void sums(const int* x, int* out) {  // understood by itself; what it calls is not
  int all = block_sum(x[threadIdx.x]);
  if (threadIdx.x == 0) out[0] = all;
}
template <int THREADS, int ITEMS> __global__ void collective(const int* x, int* out) {
  using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
  using Scan = cub::BlockScan<int, THREADS>;
  using Sort = cub::BlockRadixSort<int, THREADS, ITEMS, int>;
  __shared__ union { typename Load::TempStorage load; typename Scan::TempStorage scan; typename Sort::TempStorage sort; } shared;
  int items[ITEMS], scanned[ITEMS], places[ITEMS], all, one, last;
  Load(shared.load).Load(x, items);
  __syncthreads();
  Scan(shared.scan).ExclusiveSum(items, scanned, all);
  for (int i = 0; i < ITEMS; ++i) { out[threadIdx.x * ITEMS + i] = scanned[i]; places[i] = threadIdx.x * ITEMS + i; }
  Scan(shared.scan).InclusiveScan(items[0], one, cub::Max());
  out[512 + threadIdx.x] = one + 1000 * (all == 123456);
  Prefix prefix{100};
  for (int turn = 0; turn < 2; ++turn) { Scan(shared.scan).InclusiveSum(items[turn], one, prefix); out[600 + 64 * turn + threadIdx.x] = one; }
  __syncthreads();
  Sort(shared.sort).Sort(items, places);
  for (int i = 0; i < ITEMS; ++i) { out[1024 + threadIdx.x * ITEMS + i] = items[i]; out[1536 + threadIdx.x * ITEMS + i] = places[i]; }
  cub::BlockExchange<int, THREADS, ITEMS>().BlockedToStriped(items, items);
  cub::StoreDirectStriped<THREADS>(threadIdx.x, out + 2048, items);
  typedef cub::WarpReduce<int, 16> Warp;
  __shared__ Warp::TempStorage warps[4];
  int part = Warp(warps[threadIdx.x / 16]).Reduce(x[threadIdx.x], cub::Max());
  cub::WarpScan<int>::TempStorage none;
  cub::WarpScan<int>(none).ExclusiveSum(x[threadIdx.x], last, all);
  out[2560 + threadIdx.x] = part;
  out[2624 + threadIdx.x] = last + 100000 * all;
}
__global__ void counted(cuda::atomic<int, cuda::thread_scope_device>* a, int* b) {
  a->fetch_add(1, cuda::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_block> ref(b[0]);
  ref.fetch_max(cuda::std::min(int(threadIdx.x), cuda::std::numeric_limits<int>::max()));
}
"""

HOST = r"""
#include <cstdio>
#include <vector>
struct Even { __host__ __device__ bool operator()(int v) const { return v % 2 == 0; } };
struct Twice { __host__ __device__ int operator()(int v) const { return 2 * v; } };
static void show(const int* v, int n) { for (int i = 0; i < n; ++i) printf("%d ", v[i]); printf("\n"); }
int main() {
  int *x, *y, *z, *n; float* f;
  cudaMallocManaged(&x, 4096); cudaMallocManaged(&y, 4096); cudaMallocManaged(&z, 4096); cudaMallocManaged(&n, 4); cudaMallocManaged(&f, 4096);
  for (int i = 0; i < 50; ++i) { x[i] = (i * 37) % 50 - 20; f[i] = (i * 13) % 7 - 3.5f; }
  void* storage = nullptr; size_t bytes = 0;
  cub::DeviceReduce::Sum(storage, bytes, x, y, 50); cudaMalloc(&storage, bytes);
  cub::DeviceReduce::Sum(storage, bytes, x, y, 50); cub::DeviceReduce::Max(storage, bytes, x, y + 1, 50);
  cub::TransformInputIterator<int, Twice, int*> twice(x, Twice()); cub::DeviceReduce::Min(storage, bytes, twice, y + 2, 50); show(y, 3);
  cub::DeviceScan::ExclusiveSum(storage, bytes, x, y, 50); show(y, 50);
  cub::DoubleBuffer<int> keys(x, z); for (int i = 0; i < 50; ++i) y[i] = i;
  cub::DeviceRadixSort::SortPairsDescending(storage, bytes, x, z, y, y, 50); show(z, 50); show(y, 50);
  float* g; cudaMallocManaged(&g, 4096);
  cub::DeviceRadixSort::SortKeys(storage, bytes, f, g, 50); for (int i = 0; i < 50; ++i) printf("%g ", g[i]); printf("\n");
  cub::DeviceSelect::If(storage, bytes, x, y, n, 50, Even()); printf("%d ", *n); show(y, *n);
  for (int i = 0; i < 50; ++i) x[i] = i / 7;
  cub::DeviceRunLengthEncode::Encode(storage, bytes, x, y, z, n, 50); printf("%d ", *n); show(z, *n);
  cub::DeviceHistogram::HistogramEven(storage, bytes, x, y, 5, 0, 8, 50); show(y, 4);
}
"""


def test_cub_in_kernels() -> None:
    program = transpile.compile_text(KERNELS, "cub.cu", instances=["collective<64, 8>"])
    assert {kernel.tier for kernel in program.kernels.values()} == {"fibers"}
    loaded = program.load()
    x = np.random.default_rng(1).integers(0, 1000, 512, dtype=np.int32)
    out = np.zeros(4096, np.int32)
    loaded["collective<64, 8>"][1, 64](x, out)
    assert np.array_equal(out[:512], np.cumsum(x) - x)
    assert np.array_equal(out[512:576], np.maximum.accumulate(x[::8]))
    assert np.array_equal(out[600:664], 100 + np.cumsum(x[::8]))
    assert np.array_equal(out[664:728], 100 + x[::8].sum() + np.cumsum(x[1::8]))
    order = np.argsort(x, kind="stable")
    assert np.array_equal(out[1024:1536], x[order])
    assert np.array_equal(out[1536:2048], order)
    assert np.array_equal(out[2048:2560], x[order])
    assert np.array_equal(out[2560:2624][::16], x[:64].reshape(4, 16).max(1))
    warps = x[:64].reshape(2, 32)
    assert np.array_equal(out[2624:2688], (np.cumsum(warps, 1) - warps + 100000 * warps.sum(1, keepdims=True)).ravel())
    loaded["sums"][1, 64](x, out)
    assert out[0] == x[:64].sum()
    a, b = np.zeros(1, np.int32), np.zeros(1, np.int32)
    loaded["counted"][3, 40](a, b)
    assert (a[0], b[0]) == (120, 39)


def test_cub_for_a_device() -> None:
    program = executable(transpile.compile_text("#include <cub/cub.cuh>\n" + HOST, "all.cu", host=True).source)
    said = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout
    lines = [np.array(line.split(), float) for line in said.splitlines()]
    x, f = np.arange(50) * 37 % 50 - 20, np.arange(50) * 13 % 7 - 3.5
    order = np.argsort(-x, kind="stable")
    runs = np.bincount(np.arange(50) // 7)
    right = [[x.sum(), x.max(), 2 * x.min()], np.cumsum(x) - x, x[order], order, np.sort(f), [25, *x[x % 2 == 0]], [8, *runs]]
    right.append(runs.reshape(4, 2).sum(1))
    assert all(np.array_equal(seen, wanted) for seen, wanted in zip(lines, right, strict=True)), said


def test_what_is_not_understood_may_still_synchronise() -> None:
    text = """
    __device__ float turned(float* s, float v) { s[threadIdx.x] = v; __syncthreads(); if (int i = threadIdx.x; i >= 0) return s[31 - i]; return 0; }
    __global__ void k(float* x) { __shared__ float s[32]; x[threadIdx.x] = turned(s, x[threadIdx.x]); }"""
    program = transpile.compile_text(text)
    assert program.kernels["k"].tier == "fibers"
    x = np.arange(32, dtype=np.float32)
    program.load()["k"][1, 32](x)
    assert np.array_equal(x, np.arange(32)[::-1])
