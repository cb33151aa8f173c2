"""Functions that a source declares and another file of its project defines."""

from __future__ import annotations

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile
from warpwright.domains.transpile.errors import LaunchFailed

CUDA = """
extern void elsewhere(int);
__device__ float far_away(float);
__global__ void near_by(float* a) { a[threadIdx.x] += 1; }
__global__ void calls(float* a) { a[threadIdx.x] = far_away(a[threadIdx.x]); }
void go(float* a) { elsewhere(1); near_by<<<1, 32>>>(a); }
"""


@pytest.mark.compiler
def test_a_kernel_that_calls_what_is_only_declared_fails_and_the_others_run() -> None:
    """The dynamic linker ended the process."""
    kernels, a = transpile.compile_text(CUDA).load(PLAIN), np.zeros(32, np.float32)
    kernels["near_by"][1, 32](a)
    assert (a == 1).all()
    with pytest.raises(LaunchFailed, match=r"far_away.* is called, which the source only declares"):
        kernels["calls"][1, 32](a)
