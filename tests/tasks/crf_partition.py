"""Task: the log of the sum over all paths through a chain of labels, for sequences of several lengths."""

import torch
from torch import nn


class Model(nn.Module):
    """The forward algorithm, with scores of transitions, of beginnings and of ends."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.steps = nn.Parameter(0.5 * torch.randn(labels, labels))
        self.first = nn.Parameter(torch.randn(labels))
        self.last = nn.Parameter(torch.randn(labels))

    def forward(self, scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        state = self.first + scores[:, 0]
        for at in range(1, scores.shape[1]):
            moved = torch.logsumexp(state.unsqueeze(2) + self.steps, dim=1) + scores[:, at]
            state = torch.where((at < lengths).unsqueeze(1), moved, state)
        return torch.logsumexp(state + self.last, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 24, 7), torch.randint(1, 25, (32,))]


def get_init_inputs() -> list[object]:
    return [7]
