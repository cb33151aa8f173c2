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
def _erf(x):
    """Return the error function, of whose two forms each number takes one by a choice: CUDA's own has a branch, which ptxas makes 1,600 predicated
    instructions of for 64 numbers (a product that ends so: 5,344 instructions, with this 3,416).

    Below 1 a polynomial of the square, above it 1 - 2^-p, with least largest errors by weighted least squares: 1.04e-7, and 1.26e-7 of the result.
    """
    a = tl.abs(x)
    z = a * a
    near = -0.026717720711425065 + z * (0.0049248029089401825 - z * 0.0005660204202406005)
    near = a + a * (0.12837912862042178 + z * (-0.37612355781509893 + z * (0.11280412183728598 + z * near)))
    b = tl.minimum(a, 4.0)  # where the result is 1 in float32
    far = 0.1278720050818892 + b * (-0.021320293484316216 + b * 0.0016597046584909832)
    far = 0.0038544733445587355 + b * (1.6121228790339972 + b * (0.9442280702051847 + b * far))
    erf = tl.where(a < 1.0, near, 1.0 - tl.exp2(-far))
    return tl.where(x < 0, -erf, erf)


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + _erf(x * 0.7071067811865476))
