"""Counter-measures as published: compared with SciPy's functions, which the authors' descriptions name."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpwright.domains.unlearnable.verification.countermeasures import COUNTERMEASURES, coin, rsk_ff, simple


def between(image: np.ndarray, row: float, column: float) -> float:
    """One place of an image `[H, W]`, bilinearly, by the definition."""
    return sum(
        max(0.0, 1 - abs(row - i)) * max(0.0, 1 - abs(column - j)) * float(image[i, j])
        for i in range(image.shape[0])
        for j in range(image.shape[1])
    )


def test_coin_interpolates_between_the_four_neighbours() -> None:
    x = torch.rand(1, 2, 5, 6, dtype=torch.float64)
    rows, columns = torch.rand(1, 5, 6, dtype=torch.float64) * 4, torch.rand(1, 5, 6, dtype=torch.float64) * 5
    found = coin.bilinear(x, rows, columns)
    for channel, i, j in np.ndindex(2, 5, 6):
        assert float(found[0, channel, i, j]) == pytest.approx(between(x[0, channel].numpy(), float(rows[0, i, j]), float(columns[0, i, j])))
    wrapped = coin._wrapped(torch.tensor([-0.5, -1.0, 0.0, 4.9, 5.0, 5.5, 6.0]), 6)
    assert torch.allclose(wrapped, torch.tensor([4.5, 4.0, 0.0, 4.9, 5.0, 0.5, 1.0]))


def test_the_low_pass_is_a_projection_on_the_lowest_cosines() -> None:
    matrix = rsk_ff.low_pass(30, 9, torch.device("cpu")).double()
    assert torch.allclose(matrix @ matrix, matrix, atol=1e-6) and float(matrix.trace()) == pytest.approx(9, abs=1e-4)
    place = (torch.arange(30) + 0.5) * np.pi / 30
    for frequency in (0, 4, 8, 9, 20):
        wave = torch.cos(frequency * place).double()
        assert torch.allclose(matrix @ wave, wave if frequency < 9 else torch.zeros(30).double(), atol=1e-5)


def test_coin_is_scipy_s_interpolation_at_wrapped_places() -> None:
    ndimage = pytest.importorskip("scipy.ndimage", reason="SciPy is an extra")
    x = torch.rand(2, 3, 9, 11, dtype=torch.float64)
    found = coin.displace_wrapping(x, torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    across, down = ((torch.rand(2, 9, 11, generator=generator) * 2 - 1) * 2.0 for _ in range(2))
    for i in range(2):
        places = np.mgrid[0:9, 0:11].astype(np.float64)
        places[0] += down[i].numpy()
        places[1] += across[i].numpy()
        for channel in range(3):
            expected = ndimage.map_coordinates(x[i, channel].numpy(), places, order=1, mode="wrap")
            assert np.abs(found[i, channel].numpy() - np.floor(expected * 255) / 255).max() <= 1.001 / 255
            assert (np.abs(found[i, channel].numpy() - np.floor(expected * 255) / 255) > 1e-6).mean() < 0.02  # rounding at the edge of a level


def test_no_displacement_is_the_identity() -> None:
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, 8, 8))).double() / 255
    assert torch.allclose(coin.displace_wrapping(x + 1e-9, torch.Generator(), 0.0), x, atol=1e-6)
    assert torch.allclose(coin.random_displacement(x, torch.Generator(), 0.0), x, atol=1e-6)


def test_the_frequency_filter_keeps_the_lowest_coefficients() -> None:
    fft = pytest.importorskip("scipy.fft", reason="SciPy is an extra")
    x = torch.rand(2, 3, 30, 30) * 0.4 + 0.3
    found = rsk_ff.lowest(x)
    spectrum = fft.dctn(x.numpy(), axes=(2, 3), norm="ortho")
    spectrum[:, :, 9:], spectrum[:, :, :, 9:] = 0, 0
    assert np.allclose(found.numpy(), np.clip(fft.idctn(spectrum, axes=(2, 3), norm="ortho"), 0, 1), atol=1e-5)


def test_random_sharpening_has_the_published_moments() -> None:
    x = torch.zeros(20_000, 1, 3, 3)
    x[:, 0, 1, 1] = 0.2
    centre = rsk_ff.sharpened(x, torch.Generator().manual_seed(0)).flatten() / 0.2
    assert float(centre.mean()) == pytest.approx(2.5, abs=0.01) and float(centre.std()) == pytest.approx(0.1, abs=0.005)
    flat = rsk_ff.sharpened(torch.full((20_000, 1, 3, 3), 0.5), torch.Generator().manual_seed(1)).flatten() / 0.5
    assert float(flat.mean()) == pytest.approx(1.0, abs=0.01)  # the kernel's sum: a flat image keeps its brightness on average


def test_cutout_greys_a_square_and_leaves_the_rest() -> None:
    x = torch.ones(200, 1, 16, 16)
    out = simple.cutout(x, torch.Generator().manual_seed(0))
    grey = (out == 0.5).flatten(1).sum(1)
    assert int(grey.max()) == 64 and int(grey.min()) >= 16 and bool(((out == 0.5) | (out == 1)).all())


def test_sources_of_the_published_ones_are_named() -> None:
    assert "2311.18403" in COUNTERMEASURES["COIN"].source and "2411.01742" in COUNTERMEASURES["RSK+FF"].source
