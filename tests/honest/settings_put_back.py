"""Warnings, logging, printing and decimals changed within the call, and put back."""

import decimal
import warnings

import torch
from torch import nn

TASK = "gelu_of_sum"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        with warnings.catch_warnings(), decimal.localcontext() as context, torch.autograd.set_detect_anomaly(False):
            warnings.simplefilter("ignore")
            context.prec = 40
            half = float(decimal.Decimal(1) / 2)
            return torch.nn.functional.gelu((x + self.bias) * half * 2)
