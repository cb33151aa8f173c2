"""Task: a batch in a dictionary, as loaders of data make it; the answer is a dictionary too."""

import torch
from torch import nn


class Model(nn.Module):
    """scores and the best of each row."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(width, classes)

    def forward(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        scores = self.head(batch["features"] * batch["weights"][:, None])
        return {"scores": scores, "best": scores.amax(1)}


ROWS, WIDTH, CLASSES = 128, 64, 32


def get_inputs() -> list[object]:
    return [{"features": torch.randn(ROWS, WIDTH), "weights": torch.rand(ROWS)}]


def get_init_inputs() -> list[object]:
    return [WIDTH, CLASSES]
