"""TF32 numbers of float32 ones, on the way to the tensor cores. Stands before the kernels that round so."""

# mypy: ignore-errors
# --- generated programs hold what follows

import triton
import triton.language as tl


@triton.jit
def _to_tf32(x):
    """Round to the nearest TF32 number; the tensor core would cut off. NaN stays NaN."""
    bits = x.to(tl.int32, bitcast=True) + 0x1000
    return tl.where(x == x, (bits & -0x2000).to(tl.float32, bitcast=True), x)
