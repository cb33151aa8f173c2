"""Trees of sums over neighbours as one operation: which loops are, and that each element is what step by step leaves."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile

LOOP = """
__global__ void k(const {type}* x, {type}* y) {{
  __shared__ {type} s[1024];
  const unsigned t = threadIdx.x;
  s[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  {loop}
  __syncthreads();
  {end}
}}
"""
BY_REST = "for (unsigned d = 1; d < blockDim.x; d *= 2) { if (t % (2 * d) == 0) s[t] += s[t + d]; __syncthreads(); }"
BY_MASK = "for (int d = 1; d < blockDim.x; d <<= 1) { __syncthreads(); if ((t & (2 * d - 1)) == 0) s[t] = s[t] + s[d + t]; }"
BY_INDEX = "for (unsigned d = 1; d < blockDim.x; d *= 2) { int at = 2 * d * t; if (at < blockDim.x) s[at] += s[at + d]; __syncthreads(); }"
FIRST, ALL = "if (t == 0) y[blockIdx.x] = s[0];", "y[blockIdx.x * blockDim.x + t] = s[t];"


@pytest.mark.compiler
@pytest.mark.parametrize(("loop", "kind"), [(BY_REST, "float"), (BY_MASK, "int"), (BY_INDEX, "float"), (BY_REST, "double")])
@pytest.mark.parametrize("end", [FIRST, ALL])
def test_elements_are_those_of_the_steps(loop: str, kind: str, end: str) -> None:
    """Blocks of 32, 256 and 1,024 threads."""
    text = LOOP.format(type=kind, loop=loop, end=end)
    program = transpile.compile_text(text, blocks={"k": (256, 1, 1)})
    assert f"ww::tree_of_neighbours<{'true' if end == FIRST else 'false'}>(s, dim_x);" in program.source
    kernels, plain = program.load(), transpile.compile_text(text, tier="fibers").load()
    for size in (32, 256, 1024):
        x = (np.random.default_rng(size).standard_normal(4 * size) * 9).astype({"float": np.float32, "double": np.float64, "int": np.int32}[kind])
        ours, want = np.zeros_like(x), np.zeros_like(x)
        kernels["k"][4, size](x, ours)
        plain["k"][4, size](x, want)
        np.testing.assert_array_equal(ours, want)


@pytest.mark.parametrize(
    "loop",
    [
        "for (unsigned d = 1; d < blockDim.x; d *= 2) { if (t % d == 0) s[t] += s[t + d]; __syncthreads(); }",
        "for (unsigned d = 2; d < blockDim.x; d *= 2) { if (t % (2 * d) == 0) s[t] += s[t + d]; __syncthreads(); }",
        "for (unsigned d = 1; d < blockDim.x; d *= 4) { if (t % (2 * d) == 0) s[t] += s[t + d]; __syncthreads(); }",
        "for (unsigned d = 1; d < blockDim.x / 2; d *= 2) { if (t % (2 * d) == 0) s[t] += s[t + d]; __syncthreads(); }",
        "for (unsigned d = 1; d < blockDim.x; d *= 2) { if (t % (2 * d) == 0) s[t] += s[t + d + 1]; __syncthreads(); }",
        "for (unsigned d = 1; d < blockDim.x; d *= 2) { if (t % (2 * d) == 0) s[t] -= s[t + d]; __syncthreads(); }",
        "for (unsigned d = 1; d < blockDim.x; d *= 2) { if (t % (2 * d) == 0) { s[t] += s[t + d]; y[t] = s[t]; } __syncthreads(); }",
        "for (unsigned d = 1; d < blockDim.x; d *= 2) { int at = 2 * d * t; if (at < 100) s[at] += s[at + d]; __syncthreads(); }",
    ],
)
def test_other_loops_stay(loop: str) -> None:
    assert "ww::tree_of_neighbours" not in transpile.compile_text(LOOP.format(type="float", loop=loop, end=FIRST)).source
