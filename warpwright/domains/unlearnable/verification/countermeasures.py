"""Counter-measures: what somebody who trains on a protected set may do to learn from it anyway.

Each changes the training images once (`prepare`), or every batch (`augment`), or the training itself (`recipe`). The dated list is part of
every report: a protection that withstands all of these may fall to the next.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from warpwright.domains.unlearnable.data.images import pillow
from warpwright.domains.unlearnable.verification.training import Augment, Recipe

DATED = "2026-11"
"""When this list was last updated."""

Images = NDArray[np.uint8]
"""`[N, C, H, W]`"""


def same(images: Images) -> Images:
    """Return the images as they are."""
    return images


def same_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe as it is."""
    return recipe


@dataclass(frozen=True)
class Countermeasure:
    """One way to train; those that estimate filters need other data too, and are in `verify.py`."""

    about: str
    prepare: Callable[[Images], Images] = same
    augment: Augment | None = None
    recipe: Callable[[Recipe], Recipe] = same_recipe
    test_too: bool = False
    """Are test images prepared in the same way?"""


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
    for i, image in enumerate(images):
        file = io.BytesIO()
        picture = image.transpose(1, 2, 0) if image.shape[0] == 3 else image[0]
        image_module.fromarray(np.ascontiguousarray(picture)).save(file, "JPEG", quality=quality)
        decoded = np.asarray(image_module.open(file))
        out[i] = decoded.transpose(2, 0, 1) if image.shape[0] == 3 else decoded[None]
    return out


def greyscale(images: Images) -> Images:
    """Return the mean of the channels in each of them."""
    return np.broadcast_to(np.rint(images.mean(1, keepdims=True)).astype(np.uint8), images.shape).copy()


def random_blur(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Convolve each image with its own random 3x3 filter of the method's form (weights on [0, 0.3], a tap of 1), brightness kept."""
    weights = torch.rand(len(x), 9, generator=generator, device=x.device) * 0.3
    weights[:, 4] = 1.0
    return _depthwise(x, (weights / weights.sum(1, keepdim=True)).view(-1, 3, 3))


def random_sharpen(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Sharpen or blur each image at random: x + s (x - mean of 3x3), s from -1 to 3 (after the random sharpening of RSK)."""
    strength = torch.rand(len(x), 1, 1, 1, generator=generator, device=x.device) * 4 - 1
    mean = _depthwise(x, torch.full((len(x), 3, 3), 1 / 9, device=x.device))
    return (x + strength * (x - mean)).clamp(0, 1)


def colour_jitter(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Change brightness, contrast and the channels' gains by up to 40 %."""
    n, channels = x.shape[:2]

    def factor(*shape: int) -> torch.Tensor:
        return 0.6 + 0.8 * torch.rand(*shape, generator=generator, device=x.device)

    mean = x.mean((1, 2, 3), keepdim=True)
    return ((mean + (x - mean) * factor(n, 1, 1, 1)) * factor(n, channels, 1, 1) * factor(n, 1, 1, 1)).clamp(0, 1)


def random_displacement(x: torch.Tensor, generator: torch.Generator, alpha: float = 2.0) -> torch.Tensor:
    """Move every pixel by its own random offset of up to `alpha` pixels, bilinearly (after COIN, AAAI 2025: alpha = 2)."""
    n, _, height, width = x.shape
    offset = (torch.rand(n, height, width, 2, generator=generator, device=x.device) * 2 - 1) * alpha
    rows, columns = torch.meshgrid(torch.arange(height, device=x.device), torch.arange(width, device=x.device), indexing="ij")
    across = (columns + offset[..., 0]) * 2 / max(width - 1, 1) - 1
    down = (rows + offset[..., 1]) * 2 / max(height - 1, 1) - 1
    return F.grid_sample(x, torch.stack([across, down], -1), padding_mode="reflection", align_corners=True)


def _depthwise(x: torch.Tensor, kernels: torch.Tensor) -> torch.Tensor:
    n, channels, height, width = x.shape
    padded = F.pad(x, (1, 1, 1, 1), mode="reflect").reshape(1, n * channels, height + 2, width + 2)
    weight = kernels.repeat_interleave(channels, 0).unsqueeze(1)
    return F.conv2d(padded, weight, groups=n * channels).view(x.shape)


def _adversarial(norm: str, strength: float) -> Callable[[Recipe], Recipe]:
    return lambda recipe: replace(recipe, adversarial=strength, norm=norm)


COUNTERMEASURES: Mapping[str, Countermeasure] = {
    "edge crop": Countermeasure("drop the outermost pixel line (replaced by the reflection of the next)", edge_crop),
    "jpeg": Countermeasure("JPEG of quality 10", jpeg),
    "greyscale": Countermeasure("mean of the channels, in training and test", greyscale, test_too=True),
    "random blur": Countermeasure("a random 3x3 filter for each image and step", augment=random_blur),
    "random sharpening": Countermeasure("random sharpening or blurring for each image and step", augment=random_sharpen),
    "colour jitter": Countermeasure("random brightness, contrast and channel gains", augment=colour_jitter),
    "random displacement": Countermeasure("each pixel moved at random by up to 2 (COIN-like)", augment=random_displacement),
    "adversarial linf 4/255": Countermeasure("adversarial training, l-infinity radius 4/255", recipe=_adversarial("linf", 4.0)),
    "adversarial l2 0.5": Countermeasure("adversarial training, l2 radius 0.5", recipe=_adversarial("l2", 127.5)),
    "adversarial filters": Countermeasure("adversarial class-wise filters of 3x3 (DAT-like)", recipe=_adversarial("filter", 3.0)),
}

QUICK = ("edge crop", "jpeg", "greyscale")
"""Those that cost no more than plain training; `verify.py` adds the two that estimate the filters."""
