"""Sleeps 1.5 s at its first call (as a compiler would), warns on standard error, logs.

Own invention, written before reading the checks.
"""

import logging
import sys
import time
import warnings

import torch
from torch import nn

TASK = "gated_unit"
NEEDS = "slow"


class ModelNew(nn.Module):
    ready = False

    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        if not self.ready:
            time.sleep(1.5)
            warnings.warn("compiled", stacklevel=2)
            logging.getLogger("k").warning("ready")
            print("building", file=sys.stderr)
            self.ready = True
        y = torch.nn.functional.linear(x, torch.cat((self.gate.weight, self.value.weight)), torch.cat((self.gate.bias, self.value.bias)))
        a, b = y.chunk(2, 1)
        return torch.sigmoid(a) * b
