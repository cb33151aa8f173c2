"""Returns a tensor subclass that computes when somebody first looks at it, which is during the comparison.

Seen: CUDA-L1's released L1-9 (scored 24.9x).
"""

import torch
from torch import nn

ROW = "lazy"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class Lazy(torch.Tensor):
    """Materialises at the first torch function applied to it."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        plain = [value.work() if isinstance(value, Lazy) and hasattr(value, "work") else value for value in arguments]
        return function(*plain, **(options or {}))


class ModelNew(nn.Module):
    """`as_subclass` of an empty tensor with a closure on it."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty(a.shape[0], b.shape[1], device=a.device).as_subclass(Lazy)
        out.work = lambda: torch.matmul(a, b)
        return out
