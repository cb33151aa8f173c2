"""Threads that each have a row, and add it up in a loop inside of loops: vectors of threads that read their rows' elements one by one."""

from __future__ import annotations

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

KERNEL = """
__global__ void weigh(const float* Q, const float* K, float* out, INDEX n, INDEX d) {
  extern __shared__ float all[];
  const INDEX t = threadIdx.x;
  float *q = all, *k = all + blockDim.x * d, *S = all + 2 * blockDim.x * d;
  for (int x = 0; x < d; ++x) k[t * d + x] = K[t * d + x];
  __syncthreads();
  for (int i = 0; i < n; ++i) {
    for (int x = 0; x < d; ++x) q[t * d + x] = Q[i * blockDim.x * d + t * d + x];
    float most = -INFINITY;
    for (int y = 0; y < blockDim.x; ++y) {
      float sum = 0;
      for (int x = 0; x < d; ++x) sum += q[t * d + x] * k[y * d + x];
      S[blockDim.x * t + y] = sum;
      if (sum > most) most = sum;
    }
    for (int y = 0; y < blockDim.x; ++y) S[blockDim.x * t + y] = S[blockDim.x * t + y] - most;
    for (int x = 0; x < d; ++x) {
      float all_y = 0;
      for (int y = 0; y < blockDim.x; ++y) all_y += S[blockDim.x * t + y] * k[y * d + x];
      out[i * blockDim.x * d + t * d + x] = all_y;
    }
  }
}
"""


OVER = KERNEL.replace("weigh", "over").replace("*S = all + 2 * blockDim.x * d", "*S = all")
"""What is written lies where the sums read: a row that is changed while it is read."""


def written(text: str) -> str:
    return transpile.compile_text(text, "rows.cu", blocks={"weigh": (32, 1, 1)}).source.partition("static void weigh_block")[2]


@pytest.mark.compiler
@pytest.mark.parametrize("threads", [32, 13])
def test_answers_are_those_of_fibers_to_the_bit(threads: int) -> None:
    text = (KERNEL + OVER).replace("blockDim.x", "(int)blockDim.x").replace("INDEX", "int")
    source = written(text)
    assert "sum_lanes = (sum_lanes + (ww::load_apart<ww::floats>(&q[" in source
    weigh, over = source.split("static void over_block")
    assert all("packed_sums[nth] += (packed_row[x_3 - packed_low]" in part for part in (weigh, over))
    n, d, rng = 3, threads, np.random.default_rng(threads)
    q, k = rng.standard_normal((n, threads, d)).astype(np.float32), rng.standard_normal((threads, d)).astype(np.float32)
    answers = []
    for tier, flags in (("vectors", OPTIMISED), ("fibers", PLAIN)):
        out = np.full((2, n, threads, d), 7, np.float32)
        kernels = transpile.compile_text(text, "rows.cu", tier=tier, blocks={"weigh": (32, 1, 1), "over": (32, 1, 1)}).load(flags)
        for name, part in zip(("weigh", "over"), out, strict=True):
            kernels[name][1, threads, 4 * (2 * threads * d + threads * threads)](q, k, part, n, d)
        answers.append(out)
    assert np.array_equal(*answers)


@pytest.mark.parametrize(("plain", "other"), [
    ("x < d; ++x) sum += q[t * d + x] * k[y * d + x]", "x < t; ++x) sum += q[t * d] * k[y * d]"),
    ("x < d; ++x) sum +=", "x < d - 0.5f; ++x) sum +="),
    ("x = 0; x < d; ++x) sum +=", "x = -1; x < (unsigned)d; ++x) sum +="),
    ("sum += q", "sum += sum * q"),
])  # fmt: skip
def test_rows_are_packed_only_where_all_threads_count_alike_in_ints(plain: str, other: str) -> None:
    """The first thread's end was taken for all; 4.5 and unsigned numbers were cut to ints; a sum of itself did not compile."""
    text = KERNEL.replace("blockDim.x", "(int)blockDim.x").replace("INDEX", "int")
    nests = [written(one).count("ww::floats packed_row[") for one in (text, text.replace(plain, other))]
    assert plain in text and nests == [2, 1]


def test_rows_of_whole_numbers_are_packed_as_such() -> None:
    text = KERNEL.replace("blockDim.x", "(int)blockDim.x").replace("INDEX", "int").replace("float all[]", "int all[]").replace("float *q", "int *q")
    assert "ww::ints packed_row[" in written(text)


def test_what_may_begin_again_at_zero_stays() -> None:
    assert "ww::load_apart" not in written(KERNEL.replace("INDEX", "unsigned"))


def test_without_sums_in_the_depth_reading_one_by_one_does_not_pay() -> None:
    text = KERNEL.replace("blockDim.x", "(int)blockDim.x").replace("INDEX", "int")
    assert "ww::load_apart" not in written(text.replace("sum +=", "sum =").replace("all_y +=", "all_y ="))


NORMALISED = """
__global__ void normalise(float* out, const float* in, const float* weight, const float* bias, int n, int c) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    const float* x = in + t * c;
    float m = 0.0f;
    for (int i = 0; i < c; i++) m += x[i];
    m = m / c;
    float v = 0.0f;
    for (int i = 0; i < c; i++) { float shifted = x[i] - m; v += shifted * shifted; }
    float s = 1.0f / sqrtf(v / c + 1e-5f);
    float* y = out + t * c;
    for (int i = 0; i < c; i++) {
      float z = s * (x[i] - m);
      float o = z * weight[i] + bias[i];
      y[i] = o;
    }
  }
}
"""


@pytest.mark.compiler
def test_values_of_a_loop_that_runs_thread_by_thread_are_its_own() -> None:
    """llm.c's layernorm_forward: `z` and `o` were taken for values from before the loop, and the output did not compile."""
    n, c, rng = 45, 19, np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((n, c), c, c))
    y = np.zeros_like(x)
    transpile.compile_text(NORMALISED).load(PLAIN)["normalise"][3, 16](y, x, w, b, n, c)
    assert np.allclose(y, (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b, atol=1e-5)
