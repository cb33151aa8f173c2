"""Counter-measures in a few lines each: image processing that anybody would try first."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from warpwright.domains.unlearnable.data.images import pillow
from warpwright.domains.unlearnable.verification.training.augmentation import convolve_each

Images = NDArray[np.uint8]
"""`[N, C, H, W]`"""

_CHUNK = 256
"""Images that one thread compresses at a time."""


def edge_crop(images: Images, pixels: int = 1) -> Images:
    """Return the images with their outermost lines replaced by the reflection of the next, so that the size stays."""
    if min(images.shape[2:]) <= 2 * pixels + 1:
        return images
    inner = images[:, :, pixels:-pixels, pixels:-pixels]
    return np.pad(inner, ((0, 0), (0, 0), (pixels, pixels), (pixels, pixels)), mode="reflect")


def jpeg(images: Images, quality: int = 10) -> Images:
    """Return the images after JPEG compression (Liu et al. 2023 use quality 10)."""
    image_module = pillow()
    out = np.empty_like(images)

    def compress(start: int) -> None:
        for i, image in enumerate(images[start : start + _CHUNK], start):
            file = io.BytesIO()
            picture = image.transpose(1, 2, 0) if image.shape[0] == 3 else image[0]
            image_module.fromarray(np.ascontiguousarray(picture)).save(file, "JPEG", quality=quality)
            decoded = np.asarray(image_module.open(file))
            out[i] = decoded.transpose(2, 0, 1) if image.shape[0] == 3 else decoded[None]

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # Pillow's codecs work without the interpreter's lock
        list(pool.map(compress, range(0, len(images), _CHUNK)))
    return out


def greyscale(images: Images) -> Images:
    """Return the mean of the channels in each of them."""
    return np.broadcast_to(np.rint(images.mean(1, keepdims=True)).astype(np.uint8), images.shape).copy()


def random_blur(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Convolve each image with its own random 3x3 filter of the method's form (weights on [0, 0.3], a tap of 1), brightness kept."""
    weights = torch.rand(len(x), 9, generator=generator, device=x.device) * 0.3
    weights[:, 4] = 1.0
    return _each(x, (weights / weights.sum(1, keepdim=True)).view(-1, 3, 3))


def random_sharpen(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Sharpen or blur each image at random: x + s (x - mean of 3x3), s from -1 to 3 (after the random sharpening of RSK)."""
    strength = torch.rand(len(x), 1, 1, 1, generator=generator, device=x.device) * 4 - 1
    mean = _each(x, torch.full((len(x), 3, 3), 1 / 9, device=x.device))
    return (x + strength * (x - mean)).clamp(0, 1)


def colour_jitter(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Change brightness, contrast and the channels' gains by up to 40 %."""
    n, channels = x.shape[:2]

    def factor(*shape: int) -> torch.Tensor:
        return 0.6 + 0.8 * torch.rand(*shape, generator=generator, device=x.device)

    mean = x.mean((1, 2, 3), keepdim=True)
    return ((mean + (x - mean) * factor(n, 1, 1, 1)) * factor(n, channels, 1, 1) * factor(n, 1, 1, 1)).clamp(0, 1)


def cutout(x: torch.Tensor, generator: torch.Generator, share: float = 0.5) -> torch.Tensor:
    """Paint a grey square of half the side over each image, at a random place that may leave the image (DeVries and Taylor 2017)."""
    n, _, height, width = x.shape
    down, across = (torch.rand(n, 1, generator=generator, device=x.device) * side for side in (height, width))
    half = share * min(height, width) / 2
    rows = (torch.arange(height, device=x.device) - down).abs() < half
    columns = (torch.arange(width, device=x.device) - across).abs() < half
    return torch.where((rows[:, :, None] & columns[:, None, :]).unsqueeze(1), torch.full_like(x, 0.5), x)


def _each(x: torch.Tensor, kernels: torch.Tensor) -> torch.Tensor:
    return convolve_each(F.pad(x, (1, 1, 1, 1), mode="reflect"), kernels)
