"""The larger and the smaller of two numbers, for kernels that end with a reduction: NaN stays NaN, as in torch's."""

# mypy: ignore-errors
# --- generated programs hold what follows

import triton
import triton.language as tl


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _smaller(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
