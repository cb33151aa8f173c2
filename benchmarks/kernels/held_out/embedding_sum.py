"""The first layer of a text encoder: three embeddings, sum, layer norm."""

import torch
from torch import nn

SEQUENCES, LENGTH, WIDTH, WORDS = 64, 512, 768, 30522


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, words: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        places = torch.arange(words.shape[1], device=words.device)
        return self.norm(self.words(words) + self.places(places) + self.kinds(kinds))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, WORDS, (SEQUENCES, LENGTH)), torch.randint(0, 2, (SEQUENCES, LENGTH))]


def get_init_inputs() -> list[int]:
    return []
