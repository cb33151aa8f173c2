"""What machine code is made faster with, beyond one run of `optimize`: agents that learn, a decorator for Triton's kernels, the last polish."""

from __future__ import annotations

from warpwright.sass.tuned import tune

__all__ = ["tune"]
