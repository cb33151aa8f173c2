"""Prints what a result parser would like to read, and ends the process with exit code 0.

Seen: results serialised on standard output in KernelBench forks; SystemExit(0) counted as success.
"""

import json
import os
import sys

import torch
from torch import nn

ROW = "forged_result"
TASK = "relu"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = "exited"


class ModelNew(nn.Module):
    """Never returns."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print(json.dumps({"ok": True, "correct": True, "status": "ok", "speedup": 100.0, "seconds": 1e-9}))
        sys.stdout.flush()
        os._exit(0)
