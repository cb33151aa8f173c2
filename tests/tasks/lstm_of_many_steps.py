"""Task: an LSTM over a sequence so long that, as it is initialised, its last state has forgotten the first half."""

import torch
from torch import nn


class Model(nn.Module):
    """linear(lstm(x)[:, -1])."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


BATCH, STEPS, INPUTS, HIDDEN, OUTPUTS = 8, 192, 16, 32, 10


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, STEPS, INPUTS)]


def get_init_inputs() -> list[object]:
    return [INPUTS, HIDDEN, OUTPUTS]
