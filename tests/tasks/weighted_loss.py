"""Task: cross entropy with weights of the classes, where some labels are ignored."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """The mean over the rows whose label counts."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.linspace(0.5, 2.0, classes))

    def forward(self, scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(scores, labels, weight=self.weight, ignore_index=-100)


ROWS, CLASSES = 256, 128


def get_inputs() -> list[torch.Tensor]:
    labels = torch.randint(0, CLASSES, (ROWS,))
    labels[::7] = -100
    return [torch.randn(ROWS, CLASSES), labels]


def get_init_inputs() -> list[object]:
    return [CLASSES]
