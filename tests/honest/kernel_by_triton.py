"""A softmax in Triton.

Own invention.
"""

import torch
import triton
import triton.language as tl
from torch import nn

TASK = "softmax"
NEEDS = "cuda"

@triton.jit
def kernel(x, y, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * row_stride + at, mask=at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + at, power / tl.sum(power, 0), mask=at < columns)


class ModelNew(nn.Module):
    """A program for each row."""

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
