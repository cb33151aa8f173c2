"""COIN (Li et al., AAAI 2025, arXiv 2311.18403): every pixel moves by its own random offset, interpolated bilinearly.

As published, for each image and step, after the random crop and flip: offsets uniform on [-alpha, alpha] in both directions, shared by the
channels, alpha = 2; places outside wrap around with period side - 1 (the first and the last line fall together, as in SciPy's mode "wrap");
the result is truncated to 8 bits. The authors train with batch 128, rate 0.1, no weight decay and 80 epochs, which is left to the recipe.
"""

from __future__ import annotations

import torch

ALPHA = 2.0


def displace_wrapping(x: torch.Tensor, generator: torch.Generator, alpha: float = ALPHA) -> torch.Tensor:
    """Return the batch `[B, C, H, W]` in [0, 1] with displaced pixels."""
    n, _, height, width = x.shape
    across, down = ((torch.rand(n, height, width, generator=generator, device=x.device) * 2 - 1) * alpha for _ in range(2))
    columns = _wrapped(torch.arange(width, device=x.device) + across, width)
    rows = _wrapped(torch.arange(height, device=x.device).view(-1, 1) + down, height)
    return (bilinear(x, rows, columns) * 255).floor() / 255


def random_displacement(x: torch.Tensor, generator: torch.Generator, alpha: float = ALPHA) -> torch.Tensor:
    """The same with places outside reflected and without rounding: COIN-like, and does not mix opposite edges."""
    n, _, height, width = x.shape
    across, down = ((torch.rand(n, height, width, generator=generator, device=x.device) * 2 - 1) * alpha for _ in range(2))
    columns = _reflected(torch.arange(width, device=x.device) + across, width)
    rows = _reflected(torch.arange(height, device=x.device).view(-1, 1) + down, height)
    return bilinear(x, rows, columns)


def bilinear(x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return `x` `[B, C, H, W]` at fractional places `rows`, `columns` `[B, H, W]` within the image."""
    n, channels, height, width = x.shape
    top, left = rows.floor().clamp(0, max(height - 2, 0)), columns.floor().clamp(0, max(width - 2, 0))
    down, right = (rows - top).unsqueeze(1), (columns - left).unsqueeze(1)
    flat = x.reshape(n, channels, height * width)

    def at(i: int, j: int) -> torch.Tensor:
        place = (top + i).clamp(max=height - 1).long() * width + (left + j).clamp(max=width - 1).long()
        return flat.gather(2, place.view(n, 1, -1).expand(n, channels, -1)).view(x.shape)

    upper = at(0, 0) * (1 - right) + at(0, 1) * right
    lower = at(1, 0) * (1 - right) + at(1, 1) * right
    return upper * (1 - down) + lower * down


def _wrapped(place: torch.Tensor, size: int) -> torch.Tensor:
    period = max(size - 1, 1)
    return torch.where((place < 0) | (place > period), place % period, place)


def _reflected(place: torch.Tensor, size: int) -> torch.Tensor:
    last = max(size - 1, 0)
    folded = place.abs()
    return (last - (last - folded).abs()).clamp(0, last)
