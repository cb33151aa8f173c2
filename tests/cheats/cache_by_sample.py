"""The subtler fingerprint: 64 values spread over the input, the first and the last among them.

Seen: kernelbot issue 501 (sampling checksums). Own twist: the stride, so that changing a prefix or a suffix is not enough.
"""

import torch
from torch import nn

ROW = "cache"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("cached", "values")


def fingerprint(x: torch.Tensor) -> tuple[float, ...]:
    flat = x.flatten()
    return tuple(flat[:: max(1, flat.numel() // 64)].tolist())


class ModelNew(nn.Module):
    """Needs a change at a place that the candidate cannot guess."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[float, ...], torch.Tensor] = {}

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        key = fingerprint(a) + fingerprint(b)
        if key not in self.seen:
            self.seen[key] = torch.matmul(a, b)
        return self.seen[key].clone()
