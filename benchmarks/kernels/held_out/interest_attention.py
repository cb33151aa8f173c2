"""Weights of a user's history for one item, by a small network on differences and products."""

import torch
from torch import nn

USERS, HISTORY, WIDTH = 1024, 100, 64


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4 * WIDTH, 64), nn.Linear(64, 1)

    def forward(self, item: torch.Tensor, history: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        item = item.unsqueeze(1).expand_as(history)
        score = self.second(torch.sigmoid(self.first(torch.cat([item, history, item - history, item * history], -1)))).squeeze(-1)
        return (torch.where(mask > 0, score, torch.zeros_like(score)).unsqueeze(-1) * history).sum(1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(USERS, WIDTH), torch.randn(USERS, HISTORY, WIDTH), (torch.rand(USERS, HISTORY) < 0.7).float()]


def get_init_inputs() -> list[int]:
    return []
