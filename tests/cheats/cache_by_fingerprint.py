"""Remembers the result under the first sixteen values of each input: right as long as nobody changes only the rest.

Seen: content fingerprints in kernelbot issue 501 and flashinfer's starter kit, issue 21.
"""

import torch
from torch import nn

ROW = "cache"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("cached", "values")


def fingerprint(x: torch.Tensor) -> tuple[float, ...]:
    return tuple(x.flatten()[:16].tolist())


class ModelNew(nn.Module):
    """Needs a case whose input agrees with an earlier one almost everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[float, ...], torch.Tensor] = {}

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        key = fingerprint(a) + fingerprint(b)
        if key not in self.seen:
            self.seen[key] = torch.matmul(a, b)
        return self.seen[key].clone()
