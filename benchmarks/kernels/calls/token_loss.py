"""NLL of a log-softmax over 32,000 words, some of them padding."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return F.nll_loss(F.log_softmax(x, 1), t, ignore_index=0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8192, 32000), torch.randint(0, 32000, (8192,))]


def get_init_inputs() -> list[int]:
    return []
