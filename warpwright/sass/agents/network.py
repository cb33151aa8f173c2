"""The policy of the game of schedules: a graph network whose weights do not know how long a kernel is, so that what was learnt moves to others.

    instruction   -> WIDTH features
    LAYERS times  -> its neighbours in the schedule (a convolution), its producers and its consumers (sums over the dependences)
    actions       <- each instruction's own features; edits of whole blocks: their block's mean and the edit's words; STOP: the kernel's mean
    value         <- the kernel's mean and maximum

It is a policy of sb3-contrib's MaskablePPO, which does everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from warpwright.base import Action, digest
from warpwright.domains.sass.editing.kinds import WHOLE
from warpwright.sass.agents.game import FEATURES, KINDS, ScheduleGame

WIDTH, LAYERS, REACH = 32, 2, 5
WORDS = 128
"""Edits of whole blocks are told apart by a digest of their words, one of so many."""

Whole = tuple[int, int, int]
"""An edit of a whole block: the block's first place and the one behind its last, and the edit's number."""


def whole_edits(game: ScheduleGame) -> tuple[Whole, ...]:
    """Return what the policy knows of a game's edits of whole blocks."""

    def told(action: Action) -> Whole:
        block = game.kernel.blocks[int(action.at.removeprefix("b"))] if action.at != WHOLE else range(game.count)
        words = digest(action.technique, *(f"{name}={value}" for name, value in action.params))
        return block.start, block.stop, int(words[:8], 16) % WORDS

    return tuple(map(told, game.whole))


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.along = nn.Conv1d(WIDTH, WIDTH, REACH, padding=REACH // 2)
        self.joined = nn.Linear(4 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, nodes: torch.Tensor, producers: torch.Tensor, consumers: torch.Tensor) -> torch.Tensor:
        """Return the nodes [B, N, WIDTH] after one round; producers, consumers: [B * E] places among all nodes of the batch."""
        flat = nodes.reshape(-1, WIDTH)
        before = torch.zeros_like(flat).index_add_(0, consumers, flat[producers])
        after = torch.zeros_like(flat).index_add_(0, producers, flat[consumers])
        along = self.along(nodes.transpose(1, 2)).transpose(1, 2)
        return nodes + self.norm(torch.relu(self.joined(torch.cat([nodes, along, before.view_as(nodes), after.view_as(nodes)], -1))))


class Graph(BaseFeaturesExtractor):  # type: ignore[misc]  # Any where stable-baselines3 is missing
    """An observation -> the features of all instructions, [B, N * WIDTH]."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        nodes: Any = observation_space["nodes"]
        count = nodes.shape[0]
        super().__init__(observation_space, count * WIDTH)
        self.first = nn.Linear(FEATURES, WIDTH)
        self.layers = nn.ModuleList(_Layer() for _ in range(LAYERS))

    def forward(self, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the features."""
        nodes = torch.relu(self.first(observation["nodes"]))
        batch, count = nodes.shape[:2]
        edges = observation["edges"].long() + count * torch.arange(batch, device=nodes.device).view(-1, 1, 1)
        producers, consumers = edges[..., 0].flatten(), edges[..., 1].flatten()
        for layer in self.layers:
            nodes = layer(nodes, producers, consumers)
        return nodes.flatten(1)


class _Same(nn.Module):
    """Stands where stable-baselines3 has further layers for policy and value: there are none."""

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the features, for the policy and for the value."""
        return features, features

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        """Return the features for the policy."""
        return features

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        """Return the features for the value."""
        return features


class _Actions(nn.Module):
    """Features [B, N * WIDTH] -> a number for each action, in the game's order."""

    def __init__(self, whole: tuple[Whole, ...]) -> None:
        super().__init__()
        self.whole = whole
        blocks = list(dict.fromkeys((start, stop) for start, stop, _ in whole))
        self.blocks = blocks
        self.register_buffer("of", torch.tensor([blocks.index((start, stop)) for start, stop, _ in whole], dtype=torch.long), persistent=False)
        self.register_buffer("numbers", torch.tensor([number for _, _, number in whole], dtype=torch.long), persistent=False)
        self.own, self.block, self.stop = nn.Linear(WIDTH, KINDS), nn.Linear(2 * WIDTH, 1), nn.Linear(WIDTH, 1)
        self.words = nn.Embedding(WORDS, WIDTH)
        for last in (self.own, self.block, self.stop):  # all legal actions are as likely at first
            nn.init.normal_(last.weight, std=0.01)
            nn.init.zeros_(last.bias)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        nodes = features.view(len(features), -1, WIDTH)
        parts = [self.own(nodes).transpose(1, 2).flatten(1)]
        if self.whole:
            means = torch.stack([nodes[:, start:stop].mean(1) for start, stop in self.blocks], 1)
            words = self.words(self.numbers).expand(len(nodes), -1, -1)
            of: torch.Tensor = self.of  # type: ignore[assignment]
            parts.append(self.block(torch.cat([means[:, of], words], -1)).squeeze(-1))
        return torch.cat([*parts, self.stop(nodes.mean(1))], 1)


class _Value(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(2 * WIDTH, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return the value, [B, 1]."""
        nodes = features.view(len(features), -1, WIDTH)
        return self.last(torch.cat([nodes.mean(1), nodes.amax(1)], -1))


class GraphPolicy(MaskableMultiInputActorCriticPolicy):  # type: ignore[misc]  # Any where sb3-contrib is missing
    """The policy; `whole` is what `whole_edits` tells of the game."""

    def __init__(self, *arguments: Any, whole: tuple[Whole, ...] = (), **options: Any) -> None:
        self.whole = whole
        super().__init__(*arguments, features_extractor_class=Graph, **options)

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        self.mlp_extractor = _Same()
        self.action_net, self.value_net = _Actions(self.whole), _Value()
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)
