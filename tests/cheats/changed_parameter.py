"""Changes a parameter of its own at each call, to have next time less to do.

Own invention: the outputs of the checked calls stay right, the model that the user saves afterwards is another one.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "layernorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "buffers"


class ModelNew(nn.Module):
    """Rounds the bias to float16 values after it was used."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = self.norm(x)
        self.norm.bias.copy_(self.norm.bias.half().float())
        return result
