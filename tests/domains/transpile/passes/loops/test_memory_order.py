"""Regions that touch memory in another order than their threads: what a stretch shares, rows of threads, sheets of blocks; answers bit for bit."""

from __future__ import annotations

import re

import numpy as np
import pytest

from warpwright.domains import transpile

TEXT = """
__global__ void rows(const int* token, const float* words, float* out, int n, int columns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int r = i / columns, c = i % columns, t = token[r];
    out[i] = words[t * columns + c] + t;
  }
}
__global__ void turned(const float* in, float* out, int W, int H) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < W && y < H) out[x * H + y] = in[y * W + x];
}
__global__ void normed(const float* x, float* out, int n, int columns) {
  const int lane = threadIdx.x % 16, wide = blockIdx.x * blockDim.x, nth = threadIdx.x / 16, r = wide + 16 * nth + lane;
  if (r < n) {
    const float* row = x + r * columns;
    float* o = out + r * columns;
    float most = -INFINITY;
    for (int k = 0; k < columns; k++)
      if (row[k] > most) most = row[k];
    double sum = 0.0;
    for (int k = 0; k < columns; k++) {
      o[k] = row[k] - most;
      sum += o[k];
    }
    for (int k = 0; k < columns; k++) o[k] /= (float)sum;
  }
}
__global__ void steps(const float* x, float* y, int n) {
  __shared__ float s[2 * 256];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  int to = 0;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    to = 1 - to;
    if (t >= d) s[to * 256 + t] = s[(1 - to) * 256 + t] + s[(1 - to) * 256 + t - d];
    else s[to * 256 + t] = s[(1 - to) * 256 + t];
    __syncthreads();
  }
  if (i < n) y[i] = s[to * 256 + t];
}
__global__ void bordered(const float* in, float* out, int W, int H) {
  __shared__ float s[10][18];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  if (x < W && y < H) {
    s[ty][tx] = in[y * W + x];
    if (threadIdx.y == 0 && y > 0) s[0][tx] = in[(y - 1) * W + x];
    if (threadIdx.y == 7 && y < H - 1) s[9][tx] = in[(y + 1) * W + x];
  }
  __syncthreads();
  if (x < W && y > 0 && y < H - 1) out[y * W + x] = s[ty - 1][tx] + s[ty + 1][tx];
}
"""


@pytest.fixture(scope="module")
def program() -> transpile.Program:
    return transpile.compile_text(TEXT)


def block_function(program: transpile.Program, name: str) -> str:
    return program.source.partition(f"static void {name}_block")[2].partition("\n}\n")[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows", r"const int t = token\[r\];.*\n#pragma omp simd"),
        ("turned", r"if \(dim_y >= 8\) {"),
        ("normed", r"ww::doubles sum_r"),
        ("steps", r"for \(int thread_x = 0; thread_x < last_x; \+\+thread_x\)"),
        ("bordered", r"last_y = \(int\)ww::smallest<long>\({dim_y, "),
    ],
)
def test_the_technique_is_chosen(program: transpile.Program, name: str, text: str) -> None:
    assert re.search(text, block_function(program, name))


def test_blocks_follow_the_stores(program: transpile.Program) -> None:
    launches = {name: program.source.partition(f"static void {name}_launch")[2].partition("\n}\n")[0] for name in ("turned", "rows", "bordered")}
    assert "}, 1, true);" in launches["turned"]
    assert not any(", true)" in launches[name] for name in ("rows", "bordered"))


def test_blocks_whose_order_shows_stay_in_order() -> None:
    text = TEXT.replace("out[x * H + y] = in[y * W + x];", "out[x * H + y] = in[y * W + x]; if (y == 0) atomicAdd(out, 1.f);")
    assert ", true);" not in transpile.compile_text(text).source.partition("static void turned_launch")[2].partition("\n}\n")[0]


@pytest.mark.compiler
def test_answers_are_those_of_fibers(program: transpile.Program) -> None:
    ours, plain = program.load(), transpile.compile_text(TEXT, tier="fibers").load()
    random = np.random.default_rng(0)
    x = random.standard_normal(70 * 130).astype(np.float32)
    token = random.integers(0, 70, 70).astype(np.int32)
    calls = [
        ("rows", (36, 1), 256, (token, x, 70 * 130, 130)), ("rows", (36, 1), 256, (token, x, 700, 10)),
        ("turned", (5, 9), (32, 8), (x, 130, 70)), ("turned", (9, 33), (16, 4), (x, 130, 70)),
        ("normed", (3, 1), 32, (x, 70, 130)), ("normed", (3, 1), 32, (x, 65, 7)),
        ("steps", (10, 1), 256, (x, 2500)), ("steps", (99, 1), 96, (x, 9000)), ("bordered", (9, 9), (16, 8), (x, 130, 70)),
    ]  # fmt: skip
    for name, grid, block, (*first, last_one, last) in calls:
        answers = []
        for kernels in (ours, plain):
            out = np.zeros_like(x)
            numbers = (last_one, last) if name != "steps" else (last,)
            arrays = first if name != "steps" else (*first, last_one)
            kernels[name][grid, block](*arrays, out, *numbers)
            answers.append(out)
        np.testing.assert_array_equal(answers[0], answers[1], err_msg=name)
