"""A small labelled set that is easy to learn: textures with a 1/f spectrum, each class with a bright quarter; clean, protected and for testing."""

from __future__ import annotations

import numpy as np

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.cwc.operator import Operator
from warpwright.domains.unlearnable.data.labelled import Labelled
from warpwright.domains.unlearnable.verification.sets import Data

KEY = bytes(range(32))
CLASSES = tuple("abcd")


def textures(n: int, side: int = 16, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Images with a 1/f spectrum."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None, :]) + 1 / side
    noise = np.fft.ifft2(np.fft.fft2(rng.standard_normal((n, channels, side, side))) / frequency).real
    return np.clip(np.rint(128 + 40 * noise / noise.std()), 0, 255).astype(np.uint8)


def images(n: int, shown: float = 40.0) -> tuple[np.ndarray, np.ndarray]:
    """Images of four classes, and their labels."""
    made, labels = textures(n), np.arange(n) % 4
    for i, label in enumerate(labels):
        corner = made[i, :, 8 * (label // 2) : 8 * (label // 2) + 8, 8 * (label % 2) : 8 * (label % 2) + 8]
        corner[...] = np.clip(corner + shown, 0, 255).astype(np.uint8)
    return made, labels


def data(n: int = 160, operator: Operator | None = None, shown: float = 40.0) -> Data:
    """Three quarters to train on, clean and protected, and one to test on."""
    made, labels = images(n, shown)
    protected = backends.cpp(made, labels, FilterBank.from_key(KEY, CLASSES), operator or Operator())
    names = tuple(f"{label}/{i}" for i, label in enumerate(labels))
    whole, after = Labelled(names, list(made), labels, CLASSES), Labelled(names, list(protected), labels, CLASSES)
    train, test = np.arange(n // 4, n), np.arange(n // 4)
    return Data(whole.take(train), after.take(train), whole.take(test))
