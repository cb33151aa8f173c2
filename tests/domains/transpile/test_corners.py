"""Small kernels for the compiler's faults that whole programs brought to light; each gives the same in every tier."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from executables import OPTIMISED, executable

from warpwright.domains import transpile

TEXT = r"""
struct Mark { float x; __device__ bool operator<(const Mark& o) const { return x < o.x; } };
template <class N> __global__ void leaves(float* x, N n, float least) {
  int i = threadIdx.x;
  if (i >= n) return;
  Mark mine{x[i]}, other{least};
  if (mine < other) return;
  x[i] = 100;
}
struct Kept {
  float v, all[2];
  __device__ void add(float x) { v += x; }
  __device__ float get() const { return v; }
  __device__ float& operator[](int i) { return all[i]; }
  __device__ Kept& operator+=(float x) { v += x; return *this; }
};
template <int N> struct Loader {
  int at;
  __device__ Loader() : at(threadIdx.x) {}
  __device__ void load(const float* x, float (&kept)[N]) { for (int k = 0; k < N; ++k) kept[k] = x[at * N + k]; }
};
typedef Loader<2> Pairs;
__device__ float of_pair(const float* x) { float kept[2]; Pairs().load(x, kept); return kept[0] + 10 * kept[1]; }
__global__ void paired(const float* x, float* y) { y[threadIdx.x] = of_pair(x); }
__global__ void objects(const float4* x, float4* y, int n) {
  float4 whole; Kept added, placed, direct, summed{1.f};
  int i = threadIdx.x;
  added.v = 0.f;
  if (n > 3) { whole = x[i]; added.add(x[i].x); placed[1] = x[i].y; direct.all[1] = x[i].z; summed += x[i].w; }
  __syncthreads();
  if (n > 3) y[i] = whole;
  __syncthreads();
  y[i + blockDim.x] = make_float4(added.get(), placed[1], direct.all[1], summed.v);
}
__global__ void leaving(const int* x, int* y, int n) {  // threads leave the loop, and with it the kernel, one by one
  __shared__ int s[32];
  int i = threadIdx.x;
  s[i] = i;
  __syncthreads();
  if (i < n) {
    int k = 0;
    while (k < x[i]) {
      int next = s[i + 1 < n ? i + 1 : i];
      __syncthreads();
      s[i] = next;
      ++k;
      __syncthreads();
    }
    y[i] = s[i] + k;
  }
}
__global__ void guarded(const int* x, int* y, int n) {  // the threads without a number pass by the last barriers
  __shared__ int s[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    s[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = s[threadIdx.x ^ 1];
    __syncthreads();
    if (x[i] > 40) {
      s[threadIdx.x] = 100;
      __syncthreads();
      y[i] += s[threadIdx.x ^ 1];
    }
  }
  y[64 + i] = i;
}
__global__ void before(int* y) {
  __shared__ int s[32];
  const unsigned i = threadIdx.x;
  s[i] = 10 * i;
  __syncthreads();
  const int* end = s + 32;
  y[i] = end[~i];
}
__global__ void centred(const float* x, float* y) {
  __shared__ float total, most;
  const int half = 2, twice = half * 2;
  if (threadIdx.x == 0) total = most = 0;
  __syncthreads();
  if (threadIdx.x % twice == 0) atomicAdd(&total, x[threadIdx.x]);
  __syncthreads();
  const float mean = total, doubled = (total) + total;
  __syncthreads();
  if (threadIdx.x == 0) total = -1;
  __syncthreads();
  const float last = total;
  y[threadIdx.x] = x[threadIdx.x] - mean + 100 * doubled + 1000 * last;
}
"""


@pytest.fixture(scope="module", params=["fibers", "vectors"])
def kernels(request: pytest.FixtureRequest) -> dict[str, transpile.LoadedKernel]:
    return transpile.compile_text(TEXT, tier=request.param, instances=["leaves<int>"]).load(OPTIMISED)


@pytest.mark.compiler
def test_operators_of_classes_and_open_types_under_a_negation(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x = np.arange(8, dtype=np.float32)
    kernels["leaves<int>"][1, 8](x, 5, 2.0)
    assert x.tolist() == [0, 1, 100, 100, 100, 5, 6, 7]


def test_threads_that_exit_are_not_waited_for(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.full(32, 3, np.int32), np.zeros(32, np.int32)
    x[16:] = 5
    kernels["leaving"][1, 32](x, y, 30)
    assert y[:14].tolist() == [i + 6 for i in range(14)] and y[30:].tolist() == [0, 0]
    assert y[16:30].tolist() == [min(i + 5, 29) + 5 for i in range(16, 30)]


def test_last_barriers_wait_for_the_threads_that_reach_them(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(64, dtype=np.int32), np.full(128, -1, np.int32)
    kernels["guarded"][2, 32](x, y, 50)
    assert y[:50].tolist() == [(i ^ 1) + (0 if i <= 40 else i ^ 1 if (i ^ 1) <= 40 else 100) for i in range(50)]
    assert y[50:64].tolist() == [-1] * 14 and y[64:].tolist() == list(range(64))


def test_shared_memory_has_addresses_of_32_bits(kernels: dict[str, transpile.LoadedKernel]) -> None:
    y = np.zeros(32, np.int32)
    kernels["before"][1, 32](y)
    assert y.tolist() == [10 * (31 - i) for i in range(32)]


PROGRAM = r"""
#include <assert.h>
#include <stdio.h>
#include <vector>
#include <cuda_runtime.h>
__global__ void checked(int* x, int n) { int i = threadIdx.x; assert(i < n); if (i < n) x[i] = i; }
int main() {
  int* x;
  cudaMalloc(&x, 64 * sizeof(int));
  std::vector<int> none;
  int refused = cudaMemcpy(x, none.data(), 64, cudaMemcpyHostToDevice) == cudaErrorInvalidValue;
  refused += cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess;
  checked<<<1, 32>>>(x, 32);
  int good = cudaDeviceSynchronize() == cudaSuccess;
  checked<<<1, 32>>>(x, 30);
  int bad = cudaDeviceSynchronize() == cudaErrorAssert;
  assert(x != nullptr);
  printf("%d %d %d %d\n", refused, good, bad, x[29]);
}
"""


@pytest.mark.compiler
@pytest.mark.parametrize("tier", ["fibers", "vectors"])
def test_assert_in_a_kernel_and_copies_of_nothing(tier: str) -> None:
    program = executable(transpile.compile_text(PROGRAM, "app.cu", tier=tier, host=True).source)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("2 1 1 29\n", 0)
    assert "Assertion `i < n' failed" in done.stderr


@pytest.mark.compiler
def test_objects_keep_a_value_for_each_thread_over_a_barrier(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(64, np.float32)
    kernels["objects"][1, 8](x, y, 8)
    assert y[:32].tolist() == x.tolist()
    assert y[32:].tolist() == (x + np.tile([0, 0, 0, 1], 8)).tolist()


@pytest.mark.compiler
def test_classes_whose_methods_ask_for_the_thread(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(16, dtype=np.float32), np.zeros(8, np.float32)
    kernels["paired"][1, 8](x, y)
    assert y.tolist() == (x[::2] + 10 * x[1::2]).tolist()


@pytest.mark.compiler
def test_a_constant_read_from_shared_memory_is_read_where_it_stands(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernels["centred"][1, 8](x, y)
    assert y.tolist() == (x - 4 + 800 - 1000).tolist()


def test_what_a_kept_types_method_calls_stays() -> None:
    """Kernels alone: a function of the host goes, unless a type that stays calls it."""
    text = """
    static const char* text_of(const cudaError_t error) { return cudaGetErrorString(error); }
    static void gone() { cudaDeviceSynchronize(); }
    template <typename T> using convert_t = void (*)(const void* from, T* to, cudaStream_t stream);
    typedef convert_t<float> (*choose_t)(int type);
    struct Holder { int* p; void check() { if (cudaGetLastError() != cudaSuccess) puts(text_of(cudaGetLastError())); } };
    __global__ void k(int* x) { x[0] = 1; }
    """
    source = transpile.compile_text(text).source
    assert "text_of(const cudaError_t" in source and "void gone()" not in source
    assert "using convert_t =" in source and "(*choose_t)(int type)" in source
