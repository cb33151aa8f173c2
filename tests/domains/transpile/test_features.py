"""What CUDA offers, feature by feature: one source, built once for each tier; the answers are numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

KERNELS = r"""
#include <cuda_fp16.h>
#define SQUARE(x) ((x) * (x))
__constant__ float weights[4] = {1.f, 2.f, 3.f, 4.f};
struct Pair { float a; int b; __device__ float sum() const { return a + b; } };
namespace inner { __device__ int twice(int v) { return 2 * v; } }
template <typename T> __device__ T clamp01(T v) { return v < T(0) ? T(0) : (v > T(1) ? T(1) : v); }
__device__ int linear_id() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ float block_sum(float v) {
  __shared__ float parts[32];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.f;
  if (threadIdx.x < 32) for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__global__ void macros_and_constants(float* x) { int i = threadIdx.x; x[i] = SQUARE(x[i]) * weights[i % 4]; }
__global__ void structs(Pair p, float* x) { x[threadIdx.x] = p.sum() + inner::twice(threadIdx.x); }
__global__ void extremes(const half* a, const half* b, half* high, half* low, __nv_bfloat16* wide) {
  int i = threadIdx.x; high[i] = max(a[i], b[i]); low[i] = __hmin(a[i], b[i]); wide[i] = min(__float2bfloat16(a[i]), __float2bfloat16(b[i]));
}
__global__ void halves(const half* a, const half* b, half* c) { int i = threadIdx.x; c[i] = __hadd(__hmul(a[i], b[i]), __float2half(0.5f)); }
__global__ void vectors4(const float4* a, float4* b) { float4 v = a[threadIdx.x]; v.x += v.w; b[threadIdx.x] = make_float4(v.y, v.x, v.z, 0.f); }
template <typename T, int N> __global__ void templated(const T* x, T* y) {
  T sum = T(0);
  for (int k = 0; k < N; ++k) sum += clamp01(x[threadIdx.x * N + k]);
  y[threadIdx.x] = sum;
}
__global__ void lambdas(int* x, int n) {
  auto add = [=](int v) { return v + n; };
  x[threadIdx.x] = add(x[threadIdx.x]);
}
__global__ void three_dimensions(int* x) {
  int i = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y * blockDim.z +
      (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  x[i] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z;
}
__global__ void totals(const float* x, float* out) {
  float s = block_sum(x[blockIdx.x * blockDim.x + threadIdx.x]); if (threadIdx.x == 0) out[blockIdx.x] = s;
}
__global__ void leaves_early(const int* x, int* y, int n) {
  __shared__ int s[64];
  int i = linear_id();
  if (i >= n) return;
  s[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = s[0] + x[i];
}
__global__ void ballots(const int* x, unsigned* y) {
  unsigned even = __ballot_sync(0xffffffff, x[threadIdx.x] % 2 == 0);
  int rank = __popc(even & ((1u << (threadIdx.x % 32)) - 1));
  y[threadIdx.x] = rank + 100 * (__any_sync(0xffffffff, x[threadIdx.x] > 60) ? 1 : 0);
}
__global__ void dynamic_shared(const float* x, float* y) {
  extern __shared__ char raw[];
  float* a = reinterpret_cast<float*>(raw);
  a[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = a[blockDim.x - 1 - threadIdx.x];
}
__global__ void switches(int* x) {
  int v = x[threadIdx.x];
  switch (v % 3) { case 0: v += 1; break; case 1: v *= 2; break; default: v = -v; }
  do { v += 5; } while (v < 20);
  x[threadIdx.x] = v;
}
__global__ void scan(int* x) {
  __shared__ int s[2][64];
  int t = threadIdx.x, from = 0, to = 1;
  s[0][t] = x[t];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    s[to][t] = t >= d ? s[from][t] + s[from][t - d] : s[from][t];
    int swap = from; from = to; to = swap;
    __syncthreads();
  }
  x[t] = s[from][t];
}
__global__ void atomics(const int* x, int* out, float* f) {
  int i = linear_id();
  atomicAdd(&out[0], x[i]); atomicMax(&out[1], x[i]); atomicMin(&out[2], x[i]); atomicXor(&out[3], x[i]); atomicAdd(f, 0.5f);
  if (atomicCAS(&out[4], 0, 1) == 0) atomicExch(&out[5], 77);
}
__global__ void any_of(const int* x, int* y) {
  y[threadIdx.x] = __syncthreads_or(x[threadIdx.x] == 9) + 10 * __syncthreads_count(x[threadIdx.x] > 31);
}
__global__ void unsigned_differences(int* x) { x[threadIdx.x] = threadIdx.x - 1 < blockDim.x ? 1 : 0; }
__global__ void private_arrays(const float* x, float* y) {
  float kept[4];
  for (int k = 0; k < 4; ++k) kept[k] = x[threadIdx.x] * k;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += kept[k];
  y[threadIdx.x] = sum;
}
__device__ void last_warp(volatile float* s, int t) {
  s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
}
__global__ void old_reduction(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  s[t + 32] = 0.f;
  __syncthreads();
  if (t < 32) last_warp(s, t);
  if (t == 0) y[0] = s[0];
}
__global__ void older_reduction(const float* x, float* y) {
  volatile __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  s[t + 32] = 0.f;
  float sum = 0.f;
  for (int d = 16; d > 0; d /= 2) s[t] = sum = s[t] + s[t + d];
  if (t == 0) y[0] = sum;
}
__global__ void mathematics(const float* x, float* y) {
  int i = threadIdx.x; y[i] = expf(x[i]) + tanhf(x[i]) + logf(x[i] + 4.f) + fmaxf(x[i], 0.f) + rsqrtf(x[i] + 5.f);
}
"""

INSTANCES = ["templated<float, 3>"]


@pytest.fixture(scope="module", params=["fibers", "vectors"])
def kernels(request: pytest.FixtureRequest) -> dict[str, transpile.LoadedKernel]:
    program = transpile.compile_text(KERNELS, "features.cu", tier=request.param, instances=INSTANCES)
    return program.load(["-O1", *transpile.FLAGS[1:]])


def integers(n: int = 64) -> np.ndarray:
    return np.arange(n, dtype=np.int32)


def test_constants_structs_and_namespaces(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x = np.arange(64, dtype=np.float32)
    kernels["macros_and_constants"][1, 64](x)
    assert np.array_equal(x, np.arange(64.0) ** 2 * (np.arange(64) % 4 + 1))
    kernels["structs"][1, 64](np.array([(1.5, 2)], dtype=[("a", "f4"), ("b", "i4")]), x)
    assert np.array_equal(x, 3.5 + 2 * np.arange(64))


def test_extremes_of_halves_pass_over_nan(kernels: dict[str, transpile.LoadedKernel]) -> None:
    a, b = np.array([1, -2, np.nan, 3, np.nan], np.float16), np.array([2, -3, 4, np.nan, np.nan], np.float16)
    high, low, wide = np.zeros(5, np.float16), np.zeros(5, np.float16), np.zeros(5, np.uint16)
    kernels["extremes"][1, 5](a, b, high, low, wide)
    assert np.array_equal(high, np.fmax(a, b), equal_nan=True) and np.array_equal(low, np.fmin(a, b), equal_nan=True)
    assert np.array_equal((wide.astype(np.uint32) << 16).view(np.float32), np.fmin(a, b).astype(np.float32), equal_nan=True)


def test_half_and_vector_types(kernels: dict[str, transpile.LoadedKernel]) -> None:
    a, b, c = np.linspace(0, 1, 64).astype(np.float16), np.linspace(1, 3, 64).astype(np.float16), np.zeros(64, np.float16)
    kernels["halves"][1, 64](a, b, c)
    assert np.array_equal(c, (a * b + np.float16(0.5)).astype(np.float16))
    v, w = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    kernels["vectors4"][1, 64](v, w)
    q = v.reshape(64, 4)
    assert np.array_equal(w.reshape(64, 4), np.stack([q[:, 1], q[:, 0] + q[:, 3], q[:, 2], 0 * q[:, 0]], 1))


def test_templates_and_lambdas(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.linspace(-1, 2, 192).astype(np.float32), np.zeros(64, np.float32)
    kernels["templated<float, 3>"][1, 64](x, y)
    assert np.allclose(y, np.clip(x, 0, 1).reshape(64, 3).sum(1), rtol=1e-6)
    z = integers()
    kernels["lambdas"][1, 64](z, 5)
    assert np.array_equal(z, np.arange(64) + 5)


def test_three_dimensions(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x = np.zeros(2 * 2 * 2 * 24, np.int32)
    kernels["three_dimensions"][(2, 2, 2), (4, 3, 2)](x)
    want = [
        tx + 10 * ty + 100 * tz + 1000 * bx + 10000 * by + 100000 * bz
        for bz in (0, 1)
        for by in (0, 1)
        for bx in (0, 1)
        for tz in (0, 1)
        for ty in range(3)
        for tx in range(4)
    ]
    assert x.tolist() == want


def test_device_functions_that_synchronise(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, out = np.arange(256, dtype=np.float32), np.zeros(2, np.float32)
    kernels["totals"][2, 128](x, out)
    assert out.tolist() == [x[:128].sum(), x[128:].sum()]


def test_threads_that_leave_before_a_barrier(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = integers(100) + 1, np.zeros(100, np.int32)
    kernels["leaves_early"][2, 64](x, y, 90)
    assert np.array_equal(y[:90], x[:90] + np.where(np.arange(90) < 64, 1, 65)) and not y[90:].any()


def test_votes(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = integers(), np.zeros(64, np.uint32)
    kernels["ballots"][1, 64](x, y)
    assert np.array_equal(y, (np.arange(64) % 32 + 1) // 2 + 100 * (np.arange(64) >= 32))
    z = np.zeros(64, np.int32)
    kernels["any_of"][1, 64](x, z)
    assert np.array_equal(z, np.full(64, 1 + 320))


def test_shared_memory(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernels["dynamic_shared"][1, 64, 256](x, y)
    assert np.array_equal(y, x[::-1])
    z = integers()
    kernels["scan"][1, 64](z)
    assert np.array_equal(z, np.cumsum(np.arange(64)))
    kernels["private_arrays"][1, 64](x, y)
    assert np.array_equal(y, 6 * x)


def test_control(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x = integers()
    kernels["switches"][1, 64](x)

    def expected(v: int) -> int:
        v = v + 1 if v % 3 == 0 else v * 2 if v % 3 == 1 else -v
        v += 5
        while v < 20:
            v += 5
        return v

    assert x.tolist() == [expected(v) for v in range(64)]
    kernels["unsigned_differences"][1, 64](x)
    assert x.tolist() == [0] + [1] * 63  # 0u - 1 is large


def test_atomics(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, out, f = integers(8192), np.array([0, -5, 9, 0, 0, 0], np.int32), np.zeros(1, np.float32)
    kernels["atomics"][64, 128](x, out, f)
    assert out.tolist() == [int(x.sum()), 8191, 0, 0, 1, 77] and f[0] == 4096


def test_warps_in_lockstep(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(1, np.float32)
    kernels["old_reduction"][1, 32](x, y)
    assert y[0] == x.sum()
    kernels["older_reduction"][1, 32](x, y)
    assert y[0] == x.sum()


def test_mathematics(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.linspace(-3, 6, 64).astype(np.float32), np.zeros(64, np.float32)
    kernels["mathematics"][1, 64](x, y)
    d = x.astype(float)
    assert np.allclose(y, np.exp(d) + np.tanh(d) + np.log(d + 4) + np.maximum(d, 0) + 1 / np.sqrt(d + 5), rtol=1e-6, atol=1e-6)


def test_tiers_and_reasons_are_told() -> None:
    text = """
    __global__ void plain(float* x) { x[threadIdx.x] = 1.f; }
    __global__ void calls(int* x) { atomicAdd(x, 1); }
    __global__ void old(volatile float* x) { volatile __shared__ float s[64]; s[threadIdx.x] = x[0]; while (s[1] > 0) s[1] -= 1; x[0] = s[1]; }
    __global__ void idle(volatile float* x) { volatile __shared__ float s[64]; s[threadIdx.x] = x[0]; while (s[1] > 0) {} x[threadIdx.x] = s[1]; }
    """
    told = transpile.compile_text(text).kernels
    assert (told["plain"].tier, told["plain"].reason) == ("vectors", "")
    assert told["calls"].tier == "loops" and "atomicAdd" in told["calls"].reason
    assert told["old"].tier == "fibers" and "line 4" in told["old"].reason and "lockstep" in told["old"].reason
    assert told["idle"].tier == "fibers" and told["idle"].reason == "line 5: it waits for what another thread writes"
