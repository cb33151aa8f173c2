"""Hangs a hook on every module of the process, the caller's too.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"

nn.modules.module.register_module_forward_hook(lambda module, inputs, output: None)


class ModelNew(nn.Module):
    """Does no more than that."""

    def forward(self, x):
        return torch.relu(x)
