"""Dynamic shared memory of a file, whose name is a member elsewhere: kernels that only know the member read it, in every tier."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile

TEXT = """
struct Sizes { int smem, n; };
extern __shared__ float smem[];
__global__ void added(float* out, const float* x, Sizes s) { out[threadIdx.x] = x[threadIdx.x] + s.smem; }
__global__ void turned(float* out, const float* x, Sizes s) {
  smem[threadIdx.x] = x[threadIdx.x]; __syncthreads(); out[threadIdx.x] = smem[s.n - 1 - threadIdx.x];
}__global__ void times(float* out, const float* x, Sizes s) { out[threadIdx.x] = x[threadIdx.x] * s.smem; }
"""


@pytest.mark.compiler
@pytest.mark.parametrize("how", [{}, {"tier": "fibers"}, {"lockstep": True}, {"sanitize": True}], ids=["best", "fibers", "lockstep", "sanitize"])
def test_a_member_of_the_name(how: Mapping[str, object]) -> None:
    kernels = transpile.compile_text(TEXT, "names.cu", **how).load(PLAIN)  # type: ignore[arg-type]
    x, sizes = np.arange(64, dtype=np.float32), np.array([5, 64], np.int32).tobytes()
    for name, expected in (("added", x + 5), ("turned", x[::-1]), ("times", x * 5)):
        out = np.zeros_like(x)
        kernels[name][1, 64, 256](out, x, sizes)
        assert np.array_equal(out, expected), name
