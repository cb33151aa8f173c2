"""Random convolutions for property tests: every stride, padding, output padding, dilation and number of groups that torch accepts."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn

_ORDINARY: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_TRANSPOSED: dict[int, Any] = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
MAX_POOL: dict[int, Any] = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVERAGE_POOL: dict[int, Any] = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}


def convolution(rng: random.Random, transposed: bool, d: int, least: int = 3) -> tuple[nn.Module, torch.Tensor]:
    """Return a random convolution of `d` axes and an input on which every output axis has at least `least` positions."""
    while True:
        groups = rng.choice([1, 1, 2])
        channels = groups * rng.randint(1, 2), groups * rng.randint(1, 3)
        stride = [rng.randint(1, 3) for _ in range(d)]
        dilation = [rng.randint(1, 2) if rng.random() < 0.4 else 1 for _ in range(d)]
        options: dict[str, Any] = {"stride": stride, "padding": [rng.randint(0, 2) for _ in range(d)], "dilation": dilation, "groups": groups}
        if transposed:
            options["output_padding"] = [rng.randint(0, max(pair) - 1) for pair in zip(stride, dilation, strict=True)]
        kernel = [rng.randint(1, 4) for _ in range(d)]
        conv = (_TRANSPOSED if transposed else _ORDINARY)[d](*channels, kernel, bias=rng.random() < 0.7, **options)
        x = torch.randn(2, channels[0], *[rng.randint(4, 8) for _ in range(d)])
        try:
            out = conv(x)
        except RuntimeError:  # the kernel is larger than the input
            continue
        if min(out.shape[2:]) >= least:
            return conv, x


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)  # type: ignore[no-any-return]
