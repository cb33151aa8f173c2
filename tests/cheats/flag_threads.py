"""Changes the number of threads of the whole process and does not put it back.

Seen: global state left changed; on a CPU this decides what the next program's time is.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class ModelNew(nn.Module):
    """One more than there were."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        torch.set_num_threads(torch.get_num_threads() + 1)
        return torch.matmul(a, b)
