"""Changes the default dtype within the call: tensors that others make afterwards are not what they think.

Seen: global state left changed, in KernelBench submissions that alter the reference's inputs.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class ModelNew(nn.Module):
    """float64 from now on."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        return torch.relu(x)
