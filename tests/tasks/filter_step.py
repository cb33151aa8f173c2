"""Task: a step of Kalman filters of four states and two measurements, in float64."""

import torch
from torch import nn


class Model(nn.Module):
    """What is believed and how surely, predicted and corrected."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = nn.Parameter(torch.eye(4, dtype=torch.float64) + 0.1 * torch.randn(4, 4, dtype=torch.float64))
        self.seen = nn.Parameter(torch.randn(2, 4, dtype=torch.float64))
        self.noise = nn.Parameter(0.5 + torch.rand(2, dtype=torch.float64))

    def forward(self, state: torch.Tensor, spread: torch.Tensor, measured: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = state @ self.moves.T
        sure = self.moves @ (spread @ spread.transpose(1, 2)) @ self.moves.T + 0.01 * torch.eye(4, dtype=state.dtype, device=state.device)
        across = sure @ self.seen.T
        gain = torch.linalg.solve(self.seen @ across + torch.diag(self.noise.abs() + 0.1), across.transpose(1, 2)).transpose(1, 2)
        state = state + (gain @ (measured - state @ self.seen.T).unsqueeze(2)).squeeze(2)
        return state, sure - gain @ across.transpose(1, 2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(6, 4, dtype=torch.float64), torch.randn(6, 4, 4, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)]


def get_init_inputs() -> list[object]:
    return []
