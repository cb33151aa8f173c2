"""Image sets made offline, on which the effect of class-wise filtering can and cannot be shown.

Digits (scikit-learn's 1,797 bundled 8x8 scans) are enlarged and placed at random on 1/f noise; train and test use different scans.
`grey` has low contrast: its true classes are harder to learn than the filters, so blur alone protects it. `colour` is easier: there
only the border that zero padding leaves protects. Both were built for this method; they show that the effect can occur, not how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from warpwright.errors import MissingExtra, UsageError

Name = Literal["grey", "colour", "digits"]
NAMES: tuple[Name, ...] = ("grey", "colour", "digits")
SIDE = 32
_TRAIN_SCANS = 1297


@dataclass(frozen=True)
class Split:
    """Images `[N, C, H, W]` uint8 and labels `[N]` int64, of ten classes."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class _Recipe:
    channels: int
    contrast: float
    """Grey levels between digit and background."""
    noise: float
    """Standard deviation of the background, in grey levels."""
    train: int
    test: int


_RECIPES = {"grey": _Recipe(1, 42.0, 34.0, 6000, 1500), "colour": _Recipe(3, 90.0, 34.0, 5000, 1500)}


def make(name: Name, seed: int = 0) -> tuple[Split, Split]:
    """Return the training and the test split; the same seed gives the same bytes."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtra("scikit-learn", "images", "the bundled digits") from error
    if name not in NAMES:
        raise UsageError(f"there is no offline set {name!r}", f"known: {', '.join(NAMES)}")
    scans, labels = load_digits(return_X_y=True)
    scans, labels = scans.reshape(-1, 8, 8) / 16.0, labels.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(scans))
    train, test = order[:_TRAIN_SCANS], order[_TRAIN_SCANS:]
    if name == "digits":
        raw = np.rint(scans * 255).astype(np.uint8)[:, None]
        return Split(raw[train], labels[train]), Split(raw[test], labels[test])
    recipe = _RECIPES[name]
    rng = np.random.default_rng([seed, NAMES.index(name)])
    return _compose(scans[train], labels[train], recipe, recipe.train, rng), _compose(scans[test], labels[test], recipe, recipe.test, rng)


def _compose(scans: NDArray[np.float64], labels: NDArray[np.int64], recipe: _Recipe, n: int, rng: np.random.Generator) -> Split:
    chosen = rng.integers(0, len(scans), n)
    images = _noise(n, recipe.channels, rng) * recipe.noise + 128
    tint = rng.standard_normal((n, recipe.channels))
    tint *= recipe.contrast / np.abs(tint).max(1, keepdims=True)
    for i, scan in enumerate(scans[chosen]):
        size = int(rng.integers(16, 25))
        top, left = rng.integers(0, SIDE - size + 1, 2)
        images[i, :, top : top + size, left : left + size] += tint[i][:, None, None] * _enlarge(scan, size)
    return Split(np.clip(np.rint(images), 0, 255).astype(np.uint8), labels[chosen])


def _noise(n: int, channels: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Noise of unit variance with the 1/f amplitude spectrum of photographs."""
    frequency = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.fftfreq(SIDE)[None, :])
    frequency[0, 0] = 1 / SIDE
    field = np.fft.ifft2(np.fft.fft2(rng.standard_normal((n, channels, SIDE, SIDE))) / frequency).real
    return field / field.std((2, 3), keepdims=True)


def _enlarge(scan: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Bilinear enlargement of an 8x8 scan to size x size."""
    position = np.clip((np.arange(size) + 0.5) * 8 / size - 0.5, 0, 7)
    low = np.minimum(position.astype(int), 6)
    weight = position - low
    rows = scan[low] * (1 - weight)[:, None] + scan[low + 1] * weight[:, None]
    return rows[:, low] * (1 - weight) + rows[:, low + 1] * weight
