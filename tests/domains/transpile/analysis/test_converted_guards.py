"""Guards on a variable that holds another number than what it is computed from: cut to fewer bits, or below zero where that is unsigned."""

from __future__ import annotations

import numpy as np
import pytest
from executables import OPTIMISED, PLAIN

from warpwright.domains import transpile

GUARDS = (
    "const signed char c = threadIdx.x + 120; if (c % 2 == 1)", "const short c = threadIdx.x + 32760; if (c % 4 == 3)",
    "const int c = threadIdx.x - 7u; if (c % 2 == 1)", "const int c = threadIdx.x * 2u - 31u; if (c % 2 == 1)",
    "const int c = threadIdx.x - blockDim.x; if (c % 2 == 1)", "const int c = threadIdx.x - blockDim.x / 2; if (c >= 0 && c % 2 == 1)",
    "const int c = threadIdx.x - 3; if (c % 2 == 1)", "const int c = threadIdx.x - 3; if (c / 2 == 0)",
    "const short c = threadIdx.x * 3000; if (c < 5)",
    "const int c = blockIdx.x * blockDim.x + threadIdx.x - 3; if (c % 4 == 1)",
    "const signed char q = n * 50; if ((threadIdx.x + q & 3) == 1)",
    "const long c = threadIdx.x - 3; if (c < 7)", "const int c = threadIdx.y - 1; if (c % 2 == 1)",
)  # fmt: skip


@pytest.mark.parametrize("tier", ["loops", "vectors"])
def test_guards_see_the_number_that_the_variable_holds(tier: str) -> None:
    text = "".join(
        f"__global__ void k{i}(int* out, int n) {{ {guard} out[(blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] += 1; }}\n"
        for i, guard in enumerate(GUARDS)
    )
    fast, fibers = transpile.compile_text(text, tier=tier).load(OPTIMISED), transpile.compile_text(text, tier="fibers").load(PLAIN)
    for i, guard in enumerate(GUARDS):
        for block in (64, (16, 4)):
            outs = [np.zeros(192, np.int32) for _ in range(2)]
            for kernels, out in zip((fast, fibers), outs, strict=True):
                kernels[f"k{i}"][3, block](out, 3)
            assert np.array_equal(*outs), (guard, block)
