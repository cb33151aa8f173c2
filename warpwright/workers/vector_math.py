"""MKL's vector functions, called once before workers are forked.

torch gives contiguous floats to MKL's vector functions, a piece to each thread. MKL chooses a function's code at its first call, and where
that call comes from two threads at once, one of them may run code of low accuracy: relative errors up to 4e-5, for that one call
(pytorch issue 188792; MKL before 2025.0). A judge's first `exp` went wrong so in one process of sixty, and an honest program was then
compared with the answer to other inputs. Of 2,000 processes, each with two threads awake, 6 saw it at their first `exp`, none after this.
"""

from __future__ import annotations

FUNCTIONS = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1",
    "floor", "frac", "i0", "lgamma", "log", "log10", "log1p", "log2", "reciprocal", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc",
)  # fmt: skip


def choose_code() -> None:
    """Call each function from one thread, on one float and on one double."""
    import torch

    for dtype in (torch.float32, torch.float64):
        value = torch.full((1,), 0.5, dtype=dtype)
        for name in FUNCTIONS:
            getattr(torch, name)(value)
        torch.pow(value, value)
