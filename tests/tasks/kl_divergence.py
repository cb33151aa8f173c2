"""Task: the divergence of scores from given shares, which may be zero."""

import torch
from torch import nn


class Model(nn.Module):
    """kl_div(log_softmax(scores), shares), averaged over the rows."""

    def forward(self, scores: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        return nn.functional.kl_div(scores.log_softmax(1), shares, reduction="batchmean")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128), torch.rand(64, 128)]


def get_init_inputs() -> list[object]:
    return []
