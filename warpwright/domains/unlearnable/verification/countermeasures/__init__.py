"""Counter-measures: what somebody who trains on a protected set may do to learn from it anyway.

Each changes the training images once (`prepare`), or every batch (`before_crop`, `augment`), or the training itself (`recipe`). The dated
list is part of every report: a protection that withstands all of these may fall to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.verification.countermeasures import simple
from warpwright.domains.unlearnable.verification.countermeasures.coin import displace_wrapping, random_displacement
from warpwright.domains.unlearnable.verification.countermeasures.rsk_ff import sharpen_and_filter
from warpwright.domains.unlearnable.verification.training.recipe import Augment, Recipe

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
    before_crop: Augment | None = None
    source: str = ""
    """Where it comes from."""


def adversarial(norm: str, strength: float) -> Callable[[Recipe], Recipe]:
    """Return the change to a recipe that makes it train against an adversary."""
    return lambda recipe: replace(recipe, adversarial=strength, norm=norm)


COUNTERMEASURES: Mapping[str, Countermeasure] = {
    "edge crop": Countermeasure("drop the outermost pixel line (replaced by the reflection of the next)", simple.edge_crop),
    "jpeg": Countermeasure("JPEG of quality 10", simple.jpeg, source="ISS: Liu et al. 2023, arXiv 2301.13838"),
    "greyscale": Countermeasure(
        "mean of the channels, in training and test", simple.greyscale, test_too=True, source="ISS: Liu et al. 2023, arXiv 2301.13838"
    ),
    "random blur": Countermeasure("a random 3x3 filter for each image and step", augment=simple.random_blur, source="arXiv 2303.04278"),
    "random sharpening": Countermeasure("random sharpening or blurring for each image and step", augment=simple.random_sharpen),
    "colour jitter": Countermeasure("random brightness, contrast and channel gains", augment=simple.colour_jitter),
    "cutout": Countermeasure("a grey square over each image", augment=simple.cutout, source="DeVries and Taylor 2017, arXiv 1708.04552"),
    "random displacement": Countermeasure("each pixel moved at random by up to 2 (COIN-like)", augment=random_displacement),
    "COIN": Countermeasure(
        "each pixel moved at random by up to 2, wrapping around, in 8 bits", augment=displace_wrapping, source="AAAI 2025, arXiv 2311.18403"
    ),
    "RSK+FF": Countermeasure(
        "random sharpening without padding, lowest 30 % of frequencies", before_crop=sharpen_and_filter, source="arXiv 2411.01742"
    ),
    "adversarial linf 4/255": Countermeasure("adversarial training, l-infinity radius 4/255", recipe=adversarial("linf", 4.0)),
    "adversarial l2 0.5": Countermeasure("adversarial training, l2 radius 0.5", recipe=adversarial("l2", 127.5)),
    "adversarial filters": Countermeasure(
        "adversarial class-wise filters of 3x3 (DAT-like)", recipe=adversarial("filter", 3.0), source="arXiv 2303.04278"
    ),
}

QUICK = ("edge crop", "jpeg", "greyscale")
"""Those that cost no more than plain training; `verify.py` adds the two that estimate the filters."""
