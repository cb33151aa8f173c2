"""Atomic adds of neighbours as plain ones: which regions have them, and what comes out, in one CPU thread and in several."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

ROWS = """
__global__ void rows(const int* row, const float* v, float* sums, float* by_column, int n, int columns) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int r = i / columns, c = i % columns, at = row[r];
    atomicAdd(sums + at * columns + c, v[i]);
    atomicAdd(&by_column[c], 2 * v[i]);
  }
}
__global__ void parts(const float* v, float* sums, int n) {
  __shared__ float part[256];
  float* const mine = part;
  for (int i = threadIdx.x; i < 256; i += blockDim.x) part[i] = 0.f;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  float more = i < n ? v[i] : 0.f;
  more += __shfl_xor_sync(0xffffffffu, more, 16);
  for (int k = lane; k < 256; k += 32) atomicAdd(&mine[k], more);
  __syncthreads();
  for (int k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&sums[k], part[k]);
}
"""

HEAD = "__global__ void k(const int* keys, const float* v, float* a, float* b, int n) {{ "
HEAD += "const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {} }} }}"


def source(body: str) -> str:
    return transpile.compile_text(HEAD.format(body)).source.partition("static void k_block")[2]


@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(&a[i], v[i]);",
        "atomicAdd(a + i + 3, v[i] * v[i]); b[i] = v[i];",
        "const float x = v[i]; atomicAdd(&a[2 * i], x); atomicAdd(&b[n - i], x);",
    ],
)
def test_adds_to_places_apart_are_vectors(body: str) -> None:
    text = source(body)
    assert "if (ww::alone()) {" in text
    assert " += ww_added_1[thread_x - chunk_x];" in text


@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(&a[keys[i]], v[i]);",  # neighbours may meet
        "atomicAdd(&a[0], v[i]);",
        "atomicAdd(&a[i / 2], v[i]);",
        "b[i] = atomicAdd(&a[i], v[i]);",  # the answer is used
        "atomicAdd(&a[i], v[i]); atomicAdd(&a[i + 1], v[i]);",  # one array, two places
        "atomicAdd(&a[i], v[i]); b[i] = a[i];",  # it is read as well
        "atomicAdd(&a[i], v[i]); __threadfence();",
    ],
)
def test_others_stay_atomic(body: str) -> None:
    assert "ww_added_1" not in source(body)


@pytest.mark.compiler
@pytest.mark.parametrize(("count", "columns"), [(10, 96), (700, 96), (30, 7)])
def test_sums_are_right(count: int, columns: int) -> None:
    """Few blocks, which one CPU thread runs, and many; columns of long stretches and of none."""
    kernels = transpile.compile_text(ROWS, blocks={"parts": (128, 1, 1)}).load()
    random = np.random.default_rng(count)
    row, n = random.integers(0, 5, count).astype(np.int32), count * columns
    v = random.integers(-9, 9, n).astype(np.float32)
    sums, by_column = np.ones((5, columns), np.float32), np.zeros(columns, np.float32)
    kernels["rows"][(n + 127) // 128, 128](row, v, sums, by_column, n, columns)
    want = np.ones((5, columns), np.float32)
    np.add.at(want, row, v.reshape(count, columns))
    np.testing.assert_array_equal(sums, want)
    np.testing.assert_array_equal(by_column, 2 * v.reshape(count, columns).sum(0))
    added = np.zeros(256, np.float32)
    kernels["parts"][(n + 127) // 128, 128](v, added, n)
    lanes = np.pad(v, (0, -n % 128)).reshape(-1, 32).sum(0)
    lanes = lanes + lanes[np.arange(32) ^ 16]
    np.testing.assert_array_equal(added, np.tile(lanes, 8))


@pytest.mark.compiler
def test_sums_are_those_of_locked_adds_bit_for_bit() -> None:
    """A product that is added is rounded first: no fused operation joins the two."""
    text = HEAD.format("atomicAdd(&a[i], v[i] * v[i + 1]); atomicAdd(&b[i % 7], v[i] * v[i + 1]);")
    v = np.random.default_rng(0).standard_normal(1025).astype(np.float32)
    answers = []
    for tier in ("vectors", "fibers"):
        a, b = np.full(1024, 0.1, np.float32), np.full(7, 0.1, np.float32)
        transpile.compile_text(text, tier=tier).load()["k"][8, 128](np.zeros(1, np.int32), v, a, b, 1024)
        answers.append((a, b))
    np.testing.assert_array_equal(answers[0][0], np.float32(0.1) + v[:-1] * v[1:])
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
