"""What a protected data set gives away without the key: linear probes of its borders and of its spectra."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from warpwright.errors import UsageError

_BINS = 5
"""Frequency bands a side of the spectrum probe."""

_TEST_SHARE = 0.3


@dataclass(frozen=True)
class Probe:
    """Percentage of held-out images that a linear classifier gets right, and that of guessing the commonest class."""

    accuracy: float
    chance: float
    error: float
    """One standard error of `accuracy`."""

    @property
    def leaks(self) -> bool:
        """Is the accuracy above chance beyond doubt (4 standard errors)?"""
        return self.accuracy > self.chance + 4 * self.error


def border_probe(images: NDArray[np.uint8], labels: NDArray[np.integer]) -> Probe:
    """Return how well four numbers, the mean of the outermost line over that of the next, predict the class: zero padding shows there."""
    x = images.astype(np.float64) + 1.0
    sides = [(x[:, :, 0], x[:, :, 1]), (x[:, :, -1], x[:, :, -2]), (x[..., 0], x[..., 1]), (x[..., -1], x[..., -2])]
    if min(images.shape[2:]) < 2:
        raise UsageError(f"expected images of at least 2 x 2 pixels, saw {images.shape[2:]}", "there is no border to probe")
    return linear_probe(np.stack([np.log(outer.mean((1, 2)) / inner.mean((1, 2))) for outer, inner in sides], 1), labels)


def spectrum_probe(images: NDArray[np.uint8], labels: NDArray[np.integer]) -> Probe:
    """Return how well a coarse log-power spectrum, mean over channels, predicts the class: the blur itself shows there."""
    x = images.astype(np.float64)
    x -= x.mean((2, 3), keepdims=True)
    power = (np.abs(np.fft.rfft2(x)) ** 2).mean(1)
    down = np.minimum((np.abs(np.fft.fftfreq(x.shape[2])) * 2 * _BINS).astype(int), _BINS - 1)
    across = np.minimum((np.fft.rfftfreq(x.shape[3]) * 2 * _BINS).astype(int), _BINS - 1)
    band = down[:, None] * _BINS + across[None, :]
    features = [np.log(power[:, band == number].mean(1) + 1.0) for number in np.unique(band)]
    return linear_probe(np.stack(features, 1), labels)


def linear_probe(features: NDArray[np.float64], labels: NDArray[np.integer], seed: int = 0) -> Probe:
    """Return the held-out accuracy of multinomial logistic regression on `[N, F]` standardised features (30 % held out)."""
    classes, y = np.unique(labels, return_inverse=True)
    if len(y) < 20 or len(classes) < 2:
        raise UsageError(f"expected at least 20 images of at least 2 classes, saw {len(y)} of {len(classes)}", "give more images")
    order = np.random.default_rng(seed).permutation(len(y))
    held, used = order[: int(len(y) * _TEST_SHARE)], order[int(len(y) * _TEST_SHARE) :]
    centre, spread = features[used].mean(0), features[used].std(0) + 1e-9
    x, target = torch.from_numpy((features - centre) / spread), torch.from_numpy(y)
    weights = torch.zeros(x.shape[1] + 1, len(classes), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def scores(index: NDArray[np.intp]) -> torch.Tensor:
        return x[index] @ weights[:-1] + weights[-1]

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(scores(used), target[used]) + 1e-4 * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        right = float((scores(held).argmax(1) == target[held]).double().mean())
    common = float(np.bincount(y[held]).max() / len(held))
    error = np.sqrt(max(right * (1 - right), common * (1 - common)) / len(held))
    return Probe(100 * right, 100 * common, 100 * float(error))
