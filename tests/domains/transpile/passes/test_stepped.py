"""Code that counts on warps in lockstep by its `volatile` memory, in the faster tiers: what the threads of a warp do together, as fibers do it."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from executables import PLAIN

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

TEXT = r"""
template <class T, int size> __device__ void tail(volatile T* s, unsigned t) {
  if (size >= 64) s[t] += s[t + 32];
  s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
}
template <class T, int size> __global__ void sums(const T* x, T* y) {
  __shared__ T s[size];
  unsigned t = threadIdx.x;
  s[t] = x[blockIdx.x * size + t];
  __syncthreads();
  for (int d = size / 2; d > 32; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t < 32) tail<T, size>(s, t);
  if (t == 0) y[blockIdx.x] = s[0];
}
__global__ void of_a_pointer(const float* x, float* y) {  // the threads of a warp also keep their sums
  extern __shared__ float s[];
  int t = threadIdx.x;
  float sum = s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    volatile float* w = (volatile float*)s;
    w[t] = sum = sum + w[t + 32];
    for (int d = 16; d > 0; d /= 2) w[t] = sum = sum + w[t + d];
    y[blockIdx.x * 32 + t] = sum;
  }
}
__global__ void scanned(const int* x, int* y) {  // each warp its own, Hillis and Steele's
  __shared__ volatile int s[256];
  int t = threadIdx.x, lane = t & 31, at = 2 * t - lane;
  s[at] = 0; at += 32;
  s[at] = x[t];
  for (int d = 1; d < 32; d *= 2) s[at] += s[at - d];
  y[t] = s[at];
}
__global__ void largest(const int* x, int* y) {  // the branch is not the same for all, and those outside it read what it wrote
  __shared__ volatile int s[64];
  int t = threadIdx.x, l = t & 31;
  s[t] = x[t];
  for (int d = 16; d > 0; d >>= 1) if (l < d && s[t] < s[t + d]) s[t] = s[t + d];
  y[t] = s[t - l];
}
__global__ void apart(const int* x, int* y) {  // loops of different lengths, behind which all meet
  __shared__ volatile int s[64];
  int t = threadIdx.x, w = t & 32;
  s[t] = x[t];
  for (int i = 0; i < (x[t] & 3); ++i) s[t] += s[w + (t + i) % 32];
  y[t] = s[t] + s[w + (t + 1) % 32];
}
__device__ void some(volatile int* s, int t, int c) {  // those that return meet the others before the kernel goes on
  if (c & 2) return;
  s[t] += s[t & 32 | (t + 3 & 31)];
  if (c & 1) s[t] *= 3; else { s[t] -= s[t & 32 | (t + 9 & 31)]; }
}
__global__ void left(const int* x, int* y) {
  __shared__ volatile int s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  some(s, t, x[t]);
  y[t] = s[t & 32 | (t + 4 & 31)];
}
__device__ void add(volatile unsigned* s, unsigned bin, unsigned tag) {  // tried again by those whose count another thread has overwritten
  unsigned count;
  do {
    count = s[bin] & 0x07FFFFFFU;
    count = tag | (count + 1);
    s[bin] = count;
  } while (s[bin] != count);
}
__global__ void counted(const int* x, int* y) {
  volatile __shared__ unsigned s[16];
  int t = threadIdx.x;
  if (t < 16) s[t] = 0;
  __syncthreads();
  for (int i = t; i < 256; i += 32) add(s, x[i] & 3, t << 27);
  __syncthreads();
  if (t < 4) y[t] = s[t] & 0x07FFFFFFU;
}
__global__ void turned(const int* x, int* y) {  // an exchange in one statement
  volatile __shared__ int s[64];
  int t = threadIdx.y * blockDim.x + threadIdx.x;
  s[t] = x[t];
  for (int d = 1; d < 32; d *= 2) { s[t] += s[t ^ d]; s[t] -= x[t] & d; }
  y[t] = s[t] + s[t ^ 1];
}
"""
SHAPES = {
    "sums<int, 256>": (6, 256), "sums<float, 64>": (6, 64), "of_a_pointer": (3, 64), "scanned": (1, 128), "largest": (1, 64), "turned": (1, (16, 4)),
    "apart": (1, 64), "left": (1, 64),
}  # fmt: skip


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_the_faster_tiers_do_as_fibers_in_steps() -> None:
    instances = [name for name in SHAPES if "<" in name]
    fast, defined = transpile.compile_text(TEXT, instances=instances), transpile.compile_text(TEXT, tier="fibers", instances=instances)
    tiers = {name: kernel.tier for name, kernel in fast.kernels.items()}
    assert tiers.pop("counted") == "fibers" and set(tiers.values()) <= {"loops", "vectors"}, [k.reason for k in fast.kernels.values()]
    numbers = np.random.default_rng(0).integers(-9, 99, 2048)
    loaded = fast.load(PLAIN), defined.load(PLAIN)
    for name, (grid, block) in SHAPES.items():
        kind = np.float32 if "float" in name or "pointer" in name else np.int32
        seen = [np.zeros(256, kind) for _ in loaded]
        for kernels, y in zip(loaded, seen, strict=True):
            kernels[name][grid, block, 512](numbers.astype(kind), y)
        assert seen[0].any() and np.array_equal(*seen), name
    x, s, t = numbers[:64].astype(np.int32), numbers[:64].copy(), np.arange(64)
    for i in range(3):
        s = np.where(i < (x & 3), s + s[(t & 32) + (t + i) % 32], s)
    loaded[1]["apart"][1, 64](x, y := np.zeros(64, np.int32))
    assert np.array_equal(y, s + s[(t & 32) + (t + 1) % 32])  # both tiers do what a warp in lockstep does
    loaded[1]["counted"][1, 32](numbers.astype(np.int32), y := np.zeros(4, np.int32))
    assert np.array_equal(y, np.bincount(numbers[:256] & 3))  # a thread that has counted waits for those that try again


WAITING = {
    "a loop that may wait": "while (s[0] == 0) {}",
    "a turn that may be the last": "for (;;) { if (s[t]) break; }",
    "a value that a loop waits for": "int v = 0; while (v == 0) { int w = s[0]; v = w; }",
    "a pointer that moves": "volatile int* p = s; p++; p[t] = 1;",
    "a count in place": "s[t]++;",
    "a store in an expression": "y[t] = s[t + 1] = 3;",
}


@pytest.mark.parametrize("name", WAITING)
def test_what_is_not_read_stays_on_fibers(name: str) -> None:
    text = (
        "__global__ void k(int* y) { __shared__ volatile int s[64]; int t = threadIdx.x; s[t] = t; s[t] += s[t + 16]; "
        + WAITING[name]
        + " y[t] = s[t]; }"
    )
    assert transpile.compile_text(text).kernels["k"].tier == "fibers"
