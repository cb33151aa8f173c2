"""Recovery with the key, and estimation of the filters without it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpwright.domains.unlearnable.cwc import backends, inverse
from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank, FilterSpec, response
from warpwright.domains.unlearnable.cwc.inverse import maxima, recover
from warpwright.domains.unlearnable.cwc.operator import Operator, Pad, border
from warpwright.domains.unlearnable.verification import estimate
from warpwright.errors import UsageError

KEY = bytes(range(32))
CLASSES = tuple("abcd")


def photos(n: int, size: int = 32, seed: int = 0) -> np.ndarray:
    """Images with a natural 1/f spectrum."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size)[None, :]) + 1 / size
    noise = np.fft.ifft2(np.fft.fft2(rng.standard_normal((n, 3, size, size))) / frequency).real
    noise -= noise.min((1, 2, 3), keepdims=True)
    return np.rint(255 * noise / noise.max((1, 2, 3), keepdims=True)).astype(np.uint8)


def psnr(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    mse = ((a.astype(float) - b) ** 2).mean((1, 2, 3))
    return 10 * np.log10(255**2 / np.maximum(mse, 1e-9))


def test_recoverable_preset_comes_back_to_45_dB() -> None:
    bank = FilterBank.from_key(KEY, CLASSES, FilterSpec(min_response=0.25))
    images, labels = photos(40), np.arange(40) % 4
    operator = Operator("circular", "sum")
    back = recover(backends.cpp(images, labels, bank, operator), labels, bank, operator)
    assert np.median(psnr(back, images)) >= 45
    assert (np.abs(back.astype(int) - images) <= 1).mean() >= 0.94  # seen 0.950: dividing by the sum costs range that the maximum keeps


@pytest.mark.parametrize("pad", ["reflect", "zero", "circular"])
@pytest.mark.parametrize("scale", ["sum", "max"])
def test_every_border_and_scale_can_be_undone(pad: str, scale: str) -> None:
    bank = FilterBank.from_key(KEY, CLASSES, FilterSpec(min_response=0.25))
    images, labels = photos(8), np.arange(8) % 4
    operator = Operator(pad, scale)
    protected = backends.cpp(images, labels, bank, operator)
    tops = maxima(images, labels, bank, operator)
    back = recover(protected, labels, bank, operator, tops)
    assert np.median(psnr(back, images)) > np.median(psnr(protected, images)) + 8


@pytest.mark.parametrize("pad", ["reflect", "zero"])
@pytest.mark.parametrize(("k", "size"), [(3, 7), (4, 5), (9, 6)])
def test_the_adjoint_is_the_filters_own(pad: Pad, k: int, size: int) -> None:
    rng = np.random.default_rng(k)
    x, y = (torch.from_numpy(rng.standard_normal((2, 3, size, size + 2))) for _ in range(2))
    weights, operator = torch.from_numpy(rng.standard_normal((2, k, k))), Operator(pad, "sum")
    filtered = inverse._filter(x, weights, operator)
    rows, columns = (border(side, k, pad) for side in x.shape[2:])
    padded = np.where((rows >= 0)[:, None] & (columns >= 0), x.numpy()[:, :, rows][..., columns], 0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3))
    np.testing.assert_allclose(filtered, np.einsum("ncijab,nab->ncij", windows, weights), atol=1e-12)
    torch.testing.assert_close((filtered * y).sum(), (x * inverse._filter_adjoint(y, weights, operator)).sum())


def test_a_batch_is_recovered_by_parts_as_each_image_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bank, operator, labels = FilterBank.from_key(KEY, CLASSES), Operator("reflect", "sum"), np.arange(5) % 4
    protected = backends.cpp(photos(5), labels, bank, operator)
    monkeypatch.setattr(inverse, "_PART", 2 * protected[0].size)
    alone = [recover(protected[i : i + 1], labels[i : i + 1], bank, operator) for i in range(5)]
    assert np.array_equal(recover(protected, labels, bank, operator), np.concatenate(alone))


def test_scale_max_without_a_manifest_is_refused() -> None:
    bank = FilterBank.from_key(KEY, CLASSES)
    with pytest.raises(UsageError, match="manifest"):
        recover(photos(1), np.zeros(1, int), bank, Operator("zero", "max"))


@pytest.mark.parametrize(("k", "pb", "size"), [(3, 0.3, 32), (9, 0.06, 96)])
@pytest.mark.parametrize("scale", ["sum", "max"])
def test_one_pair_gives_the_filter_away(k: int, pb: float, size: int, scale: str) -> None:
    bank = FilterBank.from_key(KEY, CLASSES, FilterSpec(k, pb))
    images = photos(1, size)
    protected = backends.cpp(images, np.zeros(1, int), bank, Operator("reflect", scale))
    assert np.abs(estimate.from_pairs(images, protected, k, "reflect") - bank.weights[0] / UNIT).max() < 0.01


def test_spectra_alone_bring_images_nearer_to_clean_statistics() -> None:
    bank = FilterBank.from_key(KEY, CLASSES)
    images, labels = photos(400), np.arange(400) % 4
    protected = backends.cpp(images, labels, bank, Operator())
    responses = estimate.blind_responses(protected, labels, 4, photos(200, seed=9))
    undone = estimate.undo(protected, labels, responses)

    def spread(x: np.ndarray) -> float:  # how far apart the classes' spectra are: what a network can pick up
        spectra = np.stack([np.log(estimate.spectrum(x[labels == c]) + 1) for c in range(4)])
        return float(spectra.std(0).mean())

    assert spread(undone) < 0.4 * spread(protected)


def test_blind_responses_come_within_a_few_percent_of_the_filters() -> None:
    bank = FilterBank.from_key(KEY, CLASSES, FilterSpec(min_response=0.25))
    images, labels = photos(800, 28), np.arange(800) % 4
    found = estimate.blind_responses(backends.cpp(images, labels, bank, Operator()), labels, 4, photos(400, 28, seed=9))
    true = response(bank.weights, (28, 28))
    true /= np.exp(np.log(true).mean((1, 2), keepdims=True))  # up to a factor
    found /= np.exp(np.log(found).mean((1, 2), keepdims=True))
    assert np.abs(np.log(found / true)).mean() < 0.04


def test_a_class_without_images_is_left_alone() -> None:
    images = photos(8)
    responses = estimate.blind_responses(images, np.zeros(8, int), 2, images)
    assert (responses[1] == 1).all() and np.allclose(responses[0], responses[0].mean(), rtol=0.02)
