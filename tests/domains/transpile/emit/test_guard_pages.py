"""Loads and stores of part of a vector touch no memory in front of a buffer or behind it: pages there end the program."""

from __future__ import annotations

import subprocess

import pytest
from executables import executable

from warpwright.domains import transpile

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
__global__ void blurred(const float* in, float* out, int n, int H, int W) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int w = i % W, h = (i / W) % H;
  float sum = 0;
  for (int dh = 0; dh < 3; ++dh)
    for (int dw = 0; dw < 3; ++dw) {
      const int y = h + dh - 1, x = w + dw - 1;
      if (y >= 0 && y < H && x >= 0 && x < W) sum += in[i + (dh - 1) * W + dw - 1];
    }
  out[i] = sum;
}
__global__ void inner(const float* in, float* out, int n, int W) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i % W > 2 && i % W < W - 5) out[i] = in[i + 3];
}
__global__ void columns(const float* x, float* sums, int rows, int cols) {
  float sum = 0;
  for (int r = 0; r < rows; ++r) sum += x[r * cols + threadIdx.x];
  sums[threadIdx.x] = sum;
}
float* guarded(int pages) {  // pages of zeros between two that nobody may touch
  char* all = (char*)mmap(nullptr, (pages + 2) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED || mprotect(all, 4096, PROT_NONE) || mprotect(all + (pages + 1) * 4096, 4096, PROT_NONE)) exit(2);
  return (float*)(all + 4096);
}
int main() {
  const int W = 64, H = 16, rows = 128, cols = 24;
  float *in = guarded(1), *out = guarded(1), *moved = guarded(1), *x = guarded(3), *sums = guarded(1) + 1000;
  for (int i = 0; i < H * W; ++i) in[i] = i % 7;
  for (int i = 0; i < rows * cols; ++i) x[i] = i % 5;
  blurred<<<4, 256>>>(in, out, H * W, H, W);
  inner<<<4, 256>>>(in, moved, H * W, W);
  columns<<<1, cols>>>(x, sums, rows, cols);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int h = 0; h < H; ++h) for (int w = 0; w < W; ++w) {
    float sum = 0;
    for (int y = h - 1; y <= h + 1; ++y) for (int v = w - 1; v <= w + 1; ++v) if (y >= 0 && y < H && v >= 0 && v < W) sum += in[y * W + v];
    wrong += out[h * W + w] != sum;
    wrong += moved[h * W + w] != (w > 2 && w < W - 5 ? in[h * W + w + 3] : 0);
  }
  for (int c = 0; c < cols; ++c) { float sum = 0; for (int r = 0; r < rows; ++r) sum += x[r * cols + c]; wrong += sums[c] != sum; }
  printf("%d wrong\n", wrong);
}
"""


@pytest.mark.compiler
def test_parts_of_vectors_touch_nothing_else() -> None:
    program = transpile.compile_text(PROGRAM, "guards.cu", host=True)
    assert {kernel.tier for kernel in program.kernels.values()} == {"vectors"}
    assert all(one in program.source for one in ("load_lanes<ww::floats>", "store_lanes(", "ww::store(&sums[")), "no part of a vector is written here"
    done = subprocess.run([executable(program.source)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "0 wrong\n")
