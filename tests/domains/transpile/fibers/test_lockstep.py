"""`lockstep=True`: kernels that count on warps in lockstep and do not say so by `volatile`."""

from __future__ import annotations

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

TEXT = r"""
__device__ void gather(const int* from, int* to, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[n - 1 - i]; }
__global__ void sums(float* y)
    // a comment in front of the body
{
  __shared__ float s[32];
  s[threadIdx.x] = threadIdx.x;
  for (int k = 16; k > 0; k /= 2) if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
  if (threadIdx.x == 0) y[0] = s[0];
}
__global__ void columns(const float* x, float* y, int n) {  // all lanes read what lanes 0 to 3 then write
  extern __shared__ float s[];
  for (int i = 0; i < n; ++i) s[n * threadIdx.x + i] = x[n * threadIdx.x + i];
  __syncthreads();
  if (threadIdx.x < n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n * blockDim.x; i += n) sum += s[i];
    s[threadIdx.x] = sum;
  }
  if (threadIdx.x == 0) for (int i = 0; i < n; ++i) y[i] = s[i];
}
__global__ void packed(const int* x, int* y) {  // lanes leave the loop one by one and meet again behind it
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  for (int i = 0; i < x[threadIdx.x]; ++i) y[32 * threadIdx.x + i] = s[threadIdx.x ^ 1];
  int last = s[31];
  s[threadIdx.x] = -1;
  y[32 * threadIdx.x + 31] = last;
}
__global__ void turns(const int* x, int* y, int n) {  // lanes that leave a branch out do not begin the next turn before the others
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  for (int i = 0; i < n; ++i) {
    int from = s[(threadIdx.x + 1) & 31];
    if ((x[threadIdx.x] >> i) & 1) { s[threadIdx.x] = from; continue; }
    while (from > 40) from -= 40;
    s[threadIdx.x] += from;
  }
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void through_global(const int* x, int* y, int* total, int n) {
  gather(x, y, n);
  if (threadIdx.x == 0) for (int i = 0; i < n; ++i) *total += (i + 1) * y[i];
}
struct Pair { int a, b; };
template <class T> __device__ void shifted(T* s) { if (threadIdx.x > 0) { T v = s[threadIdx.x - 1]; s[threadIdx.x] = {v.a, v.b + 1}; } }
template <class T> __global__ void moved(T* y) { shifted(y); }
"""

WAITING = r"""
__global__ void in_order(const int* after, volatile int* turn, int n) {  // each waits for another thread of its block
  int missing;
  do {
    missing = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
      if (turn[i] == 0) {
        if (after[i] >= 0 && turn[after[i]] == 0) { missing = 1; continue; }
        turn[i] = after[i] < 0 ? 1 : turn[after[i]] + 1;
      }
  } while (missing);
}
"""


def test_threads_of_a_block_wait_for_each_other() -> None:
    after, turn = np.arange(1, 101, dtype=np.int32), np.zeros(100, np.int32)
    after[99] = -1
    transpile.compile_text(WAITING).load()["in_order"][1, 32](after, turn, 100)
    assert turn.tolist() == list(range(100, 0, -1))


def test_threads_step_together() -> None:
    program = transpile.compile_text(TEXT, instances=["moved<Pair>"], lockstep=True)
    assert {kernel.tier for kernel in program.kernels.values()} == {"fibers"}
    kernels = program.load()
    y = np.zeros(4, np.float32)
    kernels["sums"][1, 32](y)
    assert y[0] == 496
    x = np.arange(128, dtype=np.float32)
    kernels["columns"][1, 32, 512](x, y, 4)
    assert y.tolist() == x.reshape(32, 4).sum(0).tolist()
    counts, many = np.arange(32, dtype=np.int32)[::-1].copy() % 7, np.zeros((32, 32), np.int32)
    kernels["packed"][1, 32](counts, many.reshape(-1))
    assert [[i ^ 1] * counts[i] + [0] * (31 - counts[i]) + [31] for i in range(32)] == many.tolist()
    x, y = np.random.default_rng(0).integers(0, 64, 32).astype(np.int32), np.zeros(32, np.int32)
    kernels["turns"][1, 32](x, y, 6)
    s = np.arange(32)
    for i in range(6):
        given = np.roll(s, -1)
        s = np.where((x >> i) & 1, given, s + np.where(given > 40, (given - 1) % 40 + 1, given))
    assert y.tolist() == s.tolist()
    whole, kept, total = np.arange(100, dtype=np.int32), np.zeros(100, np.int32), np.zeros(1, np.int32)
    kernels["through_global"][1, 32](whole, kept, total, 100)
    assert total[0] == sum((i + 1) * (99 - i) for i in range(100))
    pairs = np.arange(64, dtype=np.int32)
    kernels["moved<Pair>"][1, 32](pairs)
    assert pairs[2:].tolist() == [v + i % 2 for i, v in enumerate(range(62))]


OVERLAPPING = """
template <typename Tds, int ni>
static __device__ __forceinline__ void quantise(const float* __restrict__ x, int* __restrict__ yq, void* __restrict__ yds) {
  float v = (ni == 32 || threadIdx.x < ni) ? x[threadIdx.x] : 0.0f;
  float amax = fabsf(v);
  for (int mask = 4; mask > 0; mask >>= 1) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, mask, 32));
  const float d = amax / 127;
  int q = d != 0.0f ? (int)roundf(v / d) : 0;
  yq[threadIdx.x] = q;
  if (threadIdx.x % 8 == 0 && (ni == 32 || threadIdx.x < ni)) {
    ((Tds*)yds)[threadIdx.x / 8] = d;
  }
}
template <int D> __global__ void k(const float* in, float* out) {
  __shared__ float KQ[D * 4];
  const int j = threadIdx.y;
  int* tq = (int*)&KQ[j * D];
  float* td = (float*)(tq + 16);
  quantise<float, 16>(in + j * 16, tq, td);
  __syncthreads();
  out[j * 32 + threadIdx.x] = threadIdx.x < 16 ? tq[threadIdx.x] * td[threadIdx.x / 8] : 0;
}
"""


@pytest.mark.compiler
def test_stores_through_two_pointers_that_may_overlap_are_taken_together() -> None:
    """Of 32 threads 16 write past their row, onto what later threads' scales are; the next statement writes these: so with a warp in lockstep."""
    program = transpile.compile_text(OVERLAPPING, instances=["k<64>"])
    assert "overlap" in program.kernels["k"].reason
    x, out = np.linspace(-1, 1, 64).astype(np.float32), np.zeros(128, np.float32)
    program.load(PLAIN)["k<64>"][1, (32, 4)](x, out)
    assert np.abs(out.reshape(4, 32)[:, :16].ravel() - x).max() < 0.01


def test_arrays_of_one_type_or_with_a_barrier_between_are_not_taken_for_it() -> None:
    apart = OVERLAPPING.replace("  yq[threadIdx.x] = q;", "  yq[threadIdx.x] = q; __syncwarp();")
    own = OVERLAPPING.replace("(float*)(tq + 16)", "other").replace("const int j", "__shared__ float other[64]; const int j")
    assert all("overlap" not in transpile.compile_text(text).kernels["k"].reason for text in (apart, own))
