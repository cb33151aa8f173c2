"""Pointers to arrays and to functions keep what they are initialised with."""

from __future__ import annotations

import pytest

from warpwright.domains import transpile


@pytest.mark.parametrize(
    ("declared", "tier"),
    [
        ("float (*p)[8] = sums;", "vectors"),
        ("float (*p)[8]; p = sums;", "vectors"),
        ("float (*p)[8](sums);", "fibers"),
        ("float (*p)[8]{sums};", "fibers"),
    ],
)
def test_a_pointer_to_an_array_is_initialised(declared: str, tier: str) -> None:
    body = f"float sums[4][8]; sums[1][2] = threadIdx.x; {declared} __syncthreads(); p[1][2] += 1; __syncthreads(); out[threadIdx.x] = sums[1][2];"
    program = transpile.compile_text(f"__global__ void k(float* out) {{ {body} }}", "pointers.cu")
    assert program.kernels["k"].tier == tier
    assert "= sums;" in program.source or declared in program.source
