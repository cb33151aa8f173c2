"""Activations as the ends of kernels write them: NaN stays NaN, and none loses digits near 0."""

# mypy: ignore-errors
# --- generated programs hold what follows

import triton
import triton.language as tl


@triton.jit
def _within(x, low, high):
    return tl.clamp(x, low, high, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh(x):
    square = x * x  # near 0, where the other form loses digits: relative error below 4e-7 up to 1/4
    near = x * (1.0 + square * (-1.0 / 3 + square * (2.0 / 15 - square * (17.0 / 315))))
    return tl.where(tl.abs(x) < 0.25, near, 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0))


@triton.jit
def _mish(x):
    w = tl.exp(tl.minimum(x, 20.0))  # tanh(log(1 + w)) = n / (n + 2); above 20 it is 1 in float32
    n = w * (w + 2.0)
    return tl.where(x > 20.0, x, x * (n / (n + 2.0)))


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
