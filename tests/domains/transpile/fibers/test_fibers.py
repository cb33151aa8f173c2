"""Tier F: kernels on fibers give what CUDA's rules give."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.errors import UsageError

KERNELS = """
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void reverse(int* data) {
  extern __shared__ int held[];
  held[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
template <typename T, int N> __device__ T warp_sum(T v) {
  for (int offset = N / 2; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffff, v, offset);
  return v;
}
template <typename T> __global__ void sums(const T* x, T* out) {
  T v = warp_sum<T, 32>(x[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
__global__ void stuck(int* out) {
  if (threadIdx.x < 16) __syncthreads();
  else __syncwarp();
  if (threadIdx.x < 8) __syncwarp(0xffff);
}
void run(const int* x, int* out) { sums<int><<<1, 64>>>(x, out); }
"""


@pytest.fixture(scope="module")
def kernels() -> dict[str, transpile.LoadedKernel]:
    return transpile.compile_text(KERNELS, tier="fibers", instances=["sums<double>"]).load()


def test_guarded_elements(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    kernels["saxpy"][4, 32](100, 2.0, x, y)
    assert np.array_equal(y, 2 * np.arange(100) + 1)


def test_dynamic_shared_memory_and_barrier(kernels: dict[str, transpile.LoadedKernel]) -> None:
    data = np.arange(96, dtype=np.int32)
    kernels["reverse"][1, 96, 96 * 4](data)
    assert np.array_equal(data, np.arange(96)[::-1])


def test_shuffles_and_instances_of_templates(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, total = np.arange(64, dtype=np.int32), np.zeros(1, np.int32)
    kernels["sums<int>"][1, 64](x, total)
    assert total[0] == x.sum()
    y, sum_of_y = np.arange(64) / 4, np.zeros(1)
    kernels["sums<double>"][1, 64](y, sum_of_y)
    assert sum_of_y[0] == y.sum()


def test_a_barrier_that_not_all_reach_is_an_error(kernels: dict[str, transpile.LoadedKernel]) -> None:
    with pytest.raises(transpile.LaunchFailed, match="not all threads reach"):
        kernels["stuck"][1, 32](np.zeros(1, np.int32))


def test_wrong_arguments_are_named(kernels: dict[str, transpile.LoadedKernel]) -> None:
    with pytest.raises(UsageError, match="expected an array of f4"):
        kernels["saxpy"][1, 32](1, 2.0, np.zeros(4), np.zeros(4, np.float32))
    with pytest.raises(UsageError, match="expected 4 arguments"):
        kernels["saxpy"][1, 32](1)
    with pytest.raises(transpile.LaunchFailed, match="1 to 1024 threads"):
        kernels["saxpy"][1, 2048](1, 2.0, np.zeros(4, np.float32), np.zeros(4, np.float32))


@pytest.mark.compiler
@pytest.mark.parametrize("tier", transpile.TIERS)
def test_a_parameter_called_as_the_kernel(tier: str) -> None:
    text = """
__global__ void k(float* k, int k_) { __syncthreads(); k[threadIdx.x] += k_; }
template <class T> __global__ void twice(T* __restrict__ twice) { __syncthreads(); twice[threadIdx.x] *= 2; }
namespace inner { __global__ void deep(float* deep, float deep_ = 1) { __syncthreads(); deep[threadIdx.x] -= deep_; } }
"""
    loaded = transpile.compile_text(text, tier=tier, instances=["twice<float>"]).load()
    x = np.arange(8, dtype=np.float32)
    loaded["k"][1, 8](x, 3)
    loaded["twice<float>"][1, 8](x)
    loaded["deep"][1, 8](x, 2.0)
    assert np.array_equal(x, (np.arange(8) + 3) * 2 - 2)
