"""Attacks: estimate the filters without the key, and undo them.

They show the user that the key does not hide the filters. One clean/protected pair gives a class's
filter by least squares; labels and a handful of similar clean images give its magnitude response from average spectra.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.operator import PADS, Operator, Pad, border
from warpwright.errors import UsageError

_FLOOR = 0.15
"""Smallest response that `undo` divides by: below it 8-bit rounding noise would drown the image."""


def from_pairs(clean: NDArray[np.uint8], protected: NDArray[np.uint8], k: int, pad: Pad) -> NDArray[np.float64]:
    """Return `[k, k]` one class's filter from one or more pairs `[N, C, H, W]`, scaled so that its largest weight is 1.

    Each image's own scale is unknown under "max": it is divided out by solving every image alone and averaging.
    """
    if clean.shape != protected.shape or not len(clean):
        raise UsageError(f"expected pairs of one shape, saw {clean.shape} and {protected.shape}", "give at least one pair")
    filters = [_solve(x, y, k, pad)[0] for x, y in zip(clean, protected, strict=True)]
    return np.mean([weights / weights.max() for weights in filters], axis=0).reshape(k, k)


def _solve(x: NDArray[np.uint8], y: NDArray[np.uint8], k: int, pad: Pad) -> tuple[NDArray[np.float64], float]:
    """Return `[k * k]` the least-squares weights that turn image x into y (`[C, H, W]`), and the root mean square of the residual.

    By the normal equations: k * k unknowns, 100 times as fast as an SVD of the pixels at k=9, and exact enough where rounding to 8 bits
    already costs 1e-3.
    """
    _, height, width = x.shape
    rows, columns = border(height, k, pad), border(width, k, pad)
    padded = x[:, rows[:, None], columns[None, :]] * ((rows >= 0)[:, None] & (columns >= 0)[None, :])
    shifted = np.stack([padded[:, i : i + height, j : j + width].ravel() for i in range(k) for j in range(k)]).astype(np.float64)
    target = y.ravel().astype(np.float64)
    weights, *_ = np.linalg.lstsq(shifted @ shifted.T, shifted @ target, rcond=1e-13)
    return weights.astype(np.float64), float(np.sqrt(((weights @ shifted - target) ** 2).mean()))


@dataclass(frozen=True)
class Fit:
    """What one clean/protected pair of each class reveals: the operator and all filters."""

    operator: Operator
    bank: FilterBank
    """Estimated weights, the largest of a filter 1; its fingerprint says "estimated"."""
    residual: float
    """Root mean square of what the filters do not explain, in grey levels: 0.3 is rounding to 8 bits."""


_SIDES = (3, 5, 7, 9, 11)


def fit(pairs: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]], classes: tuple[str, ...]) -> Fit:
    """Return the operator and filters that one pair (clean, protected; each `[C, H, W]`) of each class reveals, without a key.

    Chooses the smallest filter side and the border whose residual is within 10 % of the best.
    """
    probes = pairs[:3]
    sides = [k for k in _SIDES if k == _SIDES[0] or all(k * k * 8 <= min(x.shape[1:]) ** 2 for x, _ in probes)]
    tried = {(k, pad): float(np.mean([_solve(x, y, k, pad)[1] for x, y in probes])) for k in sides for pad in PADS}
    best = min(tried.values())
    k, pad = next(entry for entry, residual in tried.items() if residual <= 1.1 * best + 0.02)
    solved = [_solve(x, y, k, pad) for x, y in pairs]
    gains = np.array([weights.sum() for weights, _ in solved])
    operator = Operator(pad, "sum" if np.abs(gains - 1).max() < 0.02 else "max")
    scaled = [np.clip(np.rint(weights / weights.max() * UNIT), 0, UNIT).astype(np.int32).reshape(k, k) for weights, _ in solved]
    weights = np.stack(scaled)
    taps = {int(np.argmax(one)) for one in weights}
    rest = np.sort(weights.reshape(len(weights), -1), 1)[:, :-1]
    pb = min(float(rest.max()) / UNIT, (15.0 / (k * k - 1)))  # the largest of many draws is close to p_b
    spec = FilterSpec(k, round(pb, 3), "centre" if taps == {(k * k) // 2} else "random")
    return Fit(operator, FilterBank(classes, weights, spec, "estimated"), float(np.mean([residual for _, residual in solved])))


def spectrum(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return `[H, W]` the root of the mean power spectrum over images and channels, each image's mean removed, under a Hann window.

    Without the window the jump from one edge to the opposite one leaks into all frequencies: the responses below came out 8 % off
    instead of 2 % (28-pixel images, reflecting border).
    """
    x = images.astype(np.float64)
    x -= x.mean((2, 3), keepdims=True)
    down, across = (np.hanning(size + 2)[1:-1] for size in x.shape[2:])
    return np.sqrt((np.abs(np.fft.fft2(x * down[:, None] * across)) ** 2).mean((0, 1)))


def blind_responses(
    protected: NDArray[np.uint8], labels: NDArray[np.integer[Any]], classes: int, clean: NDArray[np.uint8], k: int = 3
) -> NDArray[np.float64]:
    """Return `[classes, H, W]` estimated magnitude responses, mean 1 over the lowest frequencies: needs no pair and no key.

    `clean`: images of the same kind, unlabelled; `k`: the filters' side, or more. A class's power over the clean power is |F|^2, which for
    a filter of side k is a cosine series of (2k-1)^2 / 2 terms: fitted, so that noise in single frequencies averages out. A class without
    images gets a response of 1.
    """
    base = spectrum(clean) ** 2
    series = _cosines(base.shape, k)
    out = np.ones((classes, *base.shape))

    def estimate(label: int) -> None:
        members = protected[labels == label]
        if len(members):
            magnitude = np.sqrt(_fit_power(spectrum(members) ** 2 / np.maximum(base, 1e-9), series))
            out[label] = magnitude / max(magnitude[_low(magnitude.shape)].mean(), 1e-9)

    _side_by_side(estimate, range(classes))
    return out


def _side_by_side(work: Callable[[int], None], labels: Iterable[int]) -> None:
    """Do the work of each class, several at once: the transforms run without the interpreter's lock."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(work, labels))


def _cosines(shape: tuple[int, ...], k: int) -> NDArray[np.float64]:
    """Return `[H * W, terms]`: 1, and 2 cos(2 pi f.d) for each pair of opposite shifts d of less than k pixels."""
    down, across = np.fft.fftfreq(shape[0])[:, None], np.fft.fftfreq(shape[1])[None, :]
    shifts = [(i, j) for i in range(k) for j in range(-k + 1, k) if i > 0 or j > 0]
    return np.stack([np.ones(shape).ravel(), *(2 * np.cos(2 * np.pi * (i * down + j * across)).ravel() for i, j in shifts)], 1)


def _fit_power(ratio: NDArray[np.float64], series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the series nearest to `ratio` in relative terms, by three rounds of reweighted least squares; the zero frequency is ignored."""
    target, fitted = ratio.ravel(), np.ones(ratio.size)
    counts = np.ones(ratio.size)
    counts[0] = 0.0
    for _ in range(3):
        weight = counts / fitted
        terms, *_ = np.linalg.lstsq(series * weight[:, None], target * weight, rcond=None)
        fitted = np.maximum(series @ terms, 1e-3)
    return fitted.reshape(ratio.shape)


def undo(images: NDArray[np.uint8], labels: NDArray[np.integer[Any]], responses: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the images with each class's magnitude response divided out (phase unchanged, responses bounded below)."""
    out = np.empty_like(images)
    size = images.shape[2:]

    def restore(label: int) -> None:
        members = labels == label
        divisor = np.maximum(responses[label], _FLOOR)[:, : size[1] // 2 + 1]  # a real filter's response is symmetric
        divisor[0, 0] = 1.0  # keep brightness
        restored = np.fft.irfft2(np.fft.rfft2(images[members]) / divisor, s=size, axes=(2, 3))
        out[members] = np.clip(np.rint(restored), 0, 255).astype(np.uint8)

    _side_by_side(restore, np.unique(labels).tolist())
    return out


def _low(shape: tuple[int, ...]) -> tuple[NDArray[np.intp], ...]:
    frequencies = np.maximum(np.abs(np.fft.fftfreq(shape[0]))[:, None], np.abs(np.fft.fftfreq(shape[1]))[None, :])
    return np.nonzero((frequencies > 0) & (frequencies < 0.1))
