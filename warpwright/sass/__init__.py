"""What machine code is made faster with, beyond one run of `optimize`: agents that learn, a decorator for Triton's kernels, the last polish."""
