"""One step of a gated recurrent update of graph nodes."""

import torch
from torch import nn

NODES, WIDTH = 4096, 256


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.from_message, self.from_state = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, message: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        a, b = self.from_message(message).chunk(3, -1), self.from_state(state).chunk(3, -1)
        reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        return (1 - update) * torch.tanh(a[2] + reset * b[2]) + update * state


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(NODES, WIDTH), torch.randn(NODES, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
