"""The last layer of a language model and its loss, float32."""

import torch
from torch import nn
from torch.nn import functional as F

TOKENS, WIDTH, WORDS = 4096, 1024, 32000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(x), labels)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, WIDTH), torch.randint(0, WORDS, (TOKENS,))]


def get_init_inputs() -> list[int]:
    return []
