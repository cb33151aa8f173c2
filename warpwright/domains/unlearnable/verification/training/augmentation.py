"""Random crops and mirrored images, computed on the device that holds the images."""

from __future__ import annotations

import torch
from torch.nn import functional as F


def crop_and_flip(x: torch.Tensor, pad: int, flip: bool, generator: torch.Generator, size: tuple[int, int] | None = None) -> torch.Tensor:
    """Give each image `[B, C, H, W]` its own random crop of the zero-padded batch (to `size`, else to its own), mirrored half of the time.

    Images smaller than `size` are padded by as much as they lack, at least.
    """
    n, channels, height, width = x.shape
    down, across = size or (height, width)
    pad = max(pad, -(-max(down - height, across - width) // 2))
    if not pad and not flip and (down, across) == (height, width):
        return x
    padded = F.pad(x, (pad, pad, pad, pad)) if pad else x
    top, left = (_offsets(n, free, x, generator) for free in (height + 2 * pad - down, width + 2 * pad - across))
    rows, columns = torch.arange(down, device=x.device).expand(n, down), torch.arange(across, device=x.device).expand(n, across)
    if flip:
        mirrored = torch.rand(n, 1, generator=generator, device=x.device) < 0.5
        columns = torch.where(mirrored, across - 1 - columns, columns)
    image = torch.arange(n, device=x.device).view(n, 1, 1, 1)
    plane = torch.arange(channels, device=x.device).view(1, channels, 1, 1)
    return padded[image, plane, (top + rows).view(n, 1, down, 1), (left + columns).view(n, 1, 1, across)]


def _offsets(n: int, free: int, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor | int:
    return torch.randint(0, free + 1, (n, 1), generator=generator, device=x.device) if free else 0


def convolve_each(x: torch.Tensor, kernels: torch.Tensor, transposed: bool = False) -> torch.Tensor:
    """Return `x` `[B, C, H, W]`, padded beforehand, with each image's own kernel `[B, k, k]`: `[B, C, H - k + 1, W - k + 1]`.

    By shifted products: a grouped convolution has a group for each image and channel, which libraries serve slowly. `transposed`: with the
    kernel turned by 180 degrees.
    """
    k = kernels.shape[-1]
    height, width = x.shape[2] - k + 1, x.shape[3] - k + 1
    turned = kernels.flip(1, 2) if transposed else kernels
    out = torch.zeros((), dtype=x.dtype, device=x.device)
    for i in range(k):
        for j in range(k):
            out = out + turned[:, i, j].view(-1, 1, 1, 1) * x[:, :, i : i + height, j : j + width]
    return out
