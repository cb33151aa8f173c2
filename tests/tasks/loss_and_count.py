"""Task: a smoothed loss over the labels that count, and how many these are."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """Labels of -100 do not count."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> object:
        return {"loss": F.cross_entropy(logits, labels, ignore_index=-100, label_smoothing=0.1), "count": int((labels != -100).sum())}


def get_inputs() -> list[torch.Tensor]:
    labels = torch.randint(0, 50, (256,))
    return [torch.randn(256, 50), torch.where(torch.rand(256) < 0.2, -100, labels)]


def get_init_inputs() -> list[object]:
    return []
