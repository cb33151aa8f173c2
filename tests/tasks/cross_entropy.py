"""Task: cross-entropy per row with integer labels."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """cross_entropy(logits, labels) of every row."""

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, labels, reduction="none")


ROWS, CLASSES = 1024, 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, CLASSES), torch.randint(0, CLASSES, (ROWS,))]


def get_init_inputs() -> list[object]:
    return []
