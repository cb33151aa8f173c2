"""Modules of training steps for `benchmarks.training_step`: ten kinds that no technique was tuned for, and five of the first version of that table.

Each entry of `STEPS` makes a module and the inputs of its forward, `small` for a CPU. Sizes for a GPU are those of one layer of a public model of a
hundred million to a few billion parameters: 0.1 to 10 ms a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Made = tuple[nn.Module, tuple[Any, ...]]


class ResidualMlp(nn.Module):
    """A perceptron with GELU and a residual."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x and what the perceptron adds to it."""
        return x + self.down(F.gelu(self.up(x)))


class CausalBlock(nn.Module):
    """Pre-norm causal self-attention by torch's call, with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Head(nn.Module):
    """Layer norm, a linear head and the cross entropy with smoothed labels."""

    def __init__(self, width: int, words: int) -> None:
        super().__init__()
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return F.cross_entropy(self.head(self.norm(x)), labels, label_smoothing=0.1)


class ResidualConvolutions(nn.Module):
    """A basic block of a residual network: two convolutions with batch norm in training mode."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.second, self.norm2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        return F.relu(x + self.norm2(self.second(F.relu(self.norm1(self.first(x))))))


class Bags(nn.Module):
    """Means of a table's rows, bag by bag, and two linear layers: a recommender's tower."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table, self.first, self.second = nn.Embedding(rows, width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return unit vectors."""
        return F.normalize(self.second(F.silu(self.first(self.table(rows).mean(1)))), dim=-1)


class Messages(nn.Module):
    """A graph layer: messages of the edges' ends, added up at their targets, with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message, self.update, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, weights: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Return the nodes' new features; `edges`: [2, E], sources and targets."""
        sent = F.relu(self.message(x))[edges[0]] * weights[:, None]
        received = torch.zeros_like(x).index_add(0, edges[1], sent)
        return self.norm(x + F.relu(self.update(received)))


class GatedMlp(nn.Module):
    """The gated perceptron of today's transformers, behind an RMS norm."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((width, inner), (width, inner), (inner, width)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x and what the perceptron adds to it."""
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class CellLoop(nn.Module):
    """An LSTM written out step by step, as people do who change it."""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.steps, self.inner, self.hidden = steps, nn.Linear(width, 4 * width), nn.Linear(width, 4 * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last hidden state; x: [N, steps, width]."""
        h = c = torch.zeros_like(x[:, 0])
        for t in range(self.steps):
            i, f, g, o = (self.inner(x[:, t]) + self.hidden(h)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class Rotated(nn.Module):
    """Queries and keys with an RMS norm of each head and rotary positions."""

    turns: torch.Tensor

    def __init__(self, heads: int, width: int, length: int) -> None:
        super().__init__()
        self.heads, self.norm_q, self.norm_k = heads, nn.RMSNorm(width), nn.RMSNorm(width)
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("turns", torch.stack([angles.cos(), angles.sin()]))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        """Return heads whose two halves are turned as a plane: [N, length, heads, width]."""
        (a, b), (cos, sin) = x.chunk(2, -1), self.turns[:, :, None]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both, turned; each [N, length, heads * width]."""
        return self.turned(self.norm_q(q.unflatten(-1, (self.heads, -1)))), self.turned(self.norm_k(k.unflatten(-1, (self.heads, -1))))


class Pairs(nn.Module):
    """The contrastive loss of two towers' features, both ways."""

    def __init__(self, width: int, common: int) -> None:
        super().__init__()
        self.left, self.right, self.scale = nn.Linear(width, common), nn.Linear(width, common), nn.Parameter(torch.tensor(2.66))

    def forward(self, images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        a, b = F.normalize(self.left(images), dim=-1), F.normalize(self.right(texts), dim=-1)
        scores = self.scale.exp() * a @ b.T
        own = torch.arange(len(scores), device=scores.device)
        return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2


# --- of the first version of the table ------------------------------------------------------------------------------------------------


class Gate(nn.Module):
    """A layer norm with a SiLU gate, as in the feed-forward half of today's transformers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.gate, self.up = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the gated residual."""
        h = self.norm(x)
        return x + F.silu(self.gate(h)) * self.up(h)


class ConvNet(nn.Module):
    """Two convolutions with batch norm in training mode, a skip connection, a pool and a linear head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)
        self.norm1, self.norm2, self.head = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels), nn.Linear(channels, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        x = F.relu(self.norm1(self.first(images)))
        x = F.relu(x + self.norm2(self.second(x)))
        return self.head(F.max_pool2d(x, 2).mean((2, 3)))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Pre-norm self-attention of several heads with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width))


class Causal(nn.Module):
    """Causal self-attention written out with a mask in a buffer, as minGPT has it, with its projections and a residual."""

    below: torch.Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("below", torch.ones(length, length).tril()[None, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's result."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        weights = F.softmax(scores.masked_fill(self.below[:, :, :length, :length] == 0, float("-inf")), dim=-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


def _bags(small: bool) -> Made:
    rows, width, bags, each = (500, 32, 64, 8) if small else (200_000, 128, 8192, 32)
    return Bags(rows, width), (torch.randint(rows, (bags, each)),)


def _messages(small: bool) -> Made:
    nodes, edges, width = (200, 1000, 32) if small else (50_000, 500_000, 128)
    return Messages(width), (torch.randn(nodes, width), torch.rand(edges), torch.randint(nodes, (2, edges)))


def _head(small: bool) -> Made:
    words, width, tokens = (200, 64, 64) if small else (32_000, 768, 4096)
    return Head(width, words), (torch.randn(tokens, width), torch.randint(words, (tokens,)))


def _rotated(small: bool) -> Made:
    heads, width, batch, length = (2, 16, 2, 32) if small else (16, 64, 8, 1024)
    return Rotated(heads, width, length), tuple(torch.randn(batch, length, heads * width) for _ in range(2))


def _gated_bf16(small: bool) -> Made:
    width, inner, tokens = (32, 64, 64) if small else (1024, 2816, 8192)
    return GatedMlp(width, inner).bfloat16(), (torch.randn(tokens, width, dtype=torch.bfloat16),)


STEPS: Mapping[str, Callable[[bool], Made]] = {
    "head_cross_entropy": _head,
    "lstm_cell_loop": lambda small: (CellLoop(16, 4), (torch.randn(4, 4, 16),)) if small else (CellLoop(256, 32), (torch.randn(64, 32, 256),)),
    "causal_block": lambda small: (CausalBlock(32, 2), (torch.randn(2, 16, 32),)) if small else (CausalBlock(512, 8), (torch.randn(8, 512, 512),)),
    "residual_convolutions": lambda small: (
        (ResidualConvolutions(8), (torch.randn(2, 8, 12, 12),)) if small else (ResidualConvolutions(64), (torch.randn(64, 64, 56, 56),))
    ),
    "bags_of_rows": _bags,
    "graph_messages": _messages,
    "gated_mlp_bf16": _gated_bf16,
    "residual_mlp": lambda small: (ResidualMlp(32, 64), (torch.randn(64, 32),)) if small else (ResidualMlp(512, 2048), (torch.randn(8192, 512),)),
    "rms_norm_rotary": _rotated,
    "contrastive_pairs": lambda small: (
        (Pairs(32, 16), (torch.randn(32, 32), torch.randn(32, 32))) if small else (Pairs(768, 512), (torch.randn(4096, 768), torch.randn(4096, 768)))
    ),
}
"""What takes longest to read and to compile is first."""

EARLIER: Mapping[str, Callable[[bool], Made]] = {
    "mlp": lambda small: (
        nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256), nn.GELU(), nn.Linear(256, 10)), (torch.randn(256, 256),)
    ),
    "conv_net": lambda small: (ConvNet(16), (torch.randn(8, 3, 32, 32),)),
    "layer_norm_gate": lambda small: (Gate(256), (torch.randn(2048, 256),)),
    "attention": lambda small: (Attention(128, 4), (torch.randn(8, 64, 128),)),
    "causal_attention": lambda small: (
        (Causal(64, 2, 32), (torch.randn(2, 32, 64),)) if small else (Causal(512, 8, 1024), (torch.randn(8, 1024, 512),))
    ),
}
"""The same sizes on both machines but for the last."""
