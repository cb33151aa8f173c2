"""RSK+FF (Kim and Sandoval-Segura 2024, arXiv 2411.01742): random sharpening kernels, then only the lowest frequencies are kept.

As published, for each image and step, before the random crop and flip: a 3x3 kernel with its centre from N(2.5, 0.1) and its four neighbours
each from -N((centre - 1) / 4, 0.1), corners 0, without padding (so the outermost line is lost), clamped to [0, 1]; then the orthonormal
cosine transform, of which the lowest 30 % of rows and columns stay (9 of 30), clamped again. The authors train with batch 512 and 60 epochs.
"""

from __future__ import annotations

import math

import torch

from warpwright.domains.unlearnable.verification.training.augmentation import convolve_each

CENTRE = 2.5
DEVIATION = 0.1
KEPT = 0.3


def sharpen_and_filter(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the batch `[B, C, H, W]` in [0, 1] sharpened and low-passed: `[B, C, H - 2, W - 2]`."""
    return lowest(sharpened(x, generator))


def sharpened(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return each image convolved with its own random sharpening kernel, unpadded."""
    drawn = torch.randn(5, len(x), generator=generator, device=x.device) * DEVIATION
    centre = CENTRE + drawn[0]
    beside = [-((centre - 1) / 4 + one) for one in drawn[1:]]
    corner = torch.zeros_like(centre)
    kernel = torch.stack([corner, beside[0], corner, beside[1], centre, beside[2], corner, beside[3], corner], 1)
    return convolve_each(x, kernel.view(-1, 3, 3)).clamp(0, 1)


def lowest(x: torch.Tensor, kept: float = KEPT) -> torch.Tensor:
    """Return the images with the lowest share of rows and columns of their cosine transform."""
    down, across = (low_pass(size, int(size * kept), x.device).to(x.dtype) for size in x.shape[2:])
    return (down @ x @ across).clamp(0, 1)


def low_pass(size: int, kept: int, device: torch.device) -> torch.Tensor:
    """Return the symmetric matrix `[size, size]` that keeps the lowest coefficients of the orthonormal DCT-II of a line."""
    place = (torch.arange(size, device=device) + 0.5) * math.pi / size
    basis = torch.cos(torch.arange(kept, device=device).view(-1, 1) * place) * math.sqrt(2 / size)
    basis = basis * torch.where(torch.arange(kept, device=device) == 0, math.sqrt(0.5), 1.0).view(-1, 1)
    return basis.T @ basis
