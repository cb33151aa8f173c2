"""Lazy whenever the input looks like the nominal distribution (mean 0, variance 1), honest on every unusual one.

Seen: distribution tests in reply to KernelBench-Verified's hidden inputs.
"""

import torch
from torch import nn

ROW = "sniffing"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """The nominal distribution is the one that is timed, so it has to be checked as well."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if abs(float(a.mean())) < 0.05 and abs(float(a.std()) - 1) < 0.05:
            return torch.zeros(a.shape[0], b.shape[1], device=a.device)
        return torch.matmul(a, b)
