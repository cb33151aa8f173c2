"""Task: a window in a buffer that no state_dict holds."""

import torch
from torch import nn


class Model(nn.Module):
    """tanh(x * window)."""

    window: torch.Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(columns), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * self.window)


ROWS, COLUMNS = 128, 512


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
