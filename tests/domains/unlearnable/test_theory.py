"""The Gaussian-mixture statement, checked numerically: factorisation, exact accuracy, bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from warpwright.domains.unlearnable.cwc import theory
from warpwright.errors import UsageError


def mean(d: int, norm: float, seed: int = 0) -> np.ndarray:
    v = np.random.default_rng(seed).standard_normal(d)
    return norm * v / np.linalg.norm(v)


def bayes(norm: float) -> float:
    return 0.5 * (1 + math.erf(norm / math.sqrt(2)))


@pytest.mark.parametrize("d", [1, 2, 7, 100])
@pytest.mark.parametrize("a", [0.0, 0.1, 0.5])
def test_toeplitz_is_diagonal_in_the_sine_basis(d: int, a: float) -> None:
    q = theory.sine_basis(d)
    assert np.abs(q @ np.diag(theory.eigenvalues(a, d)) @ q - theory.toeplitz(a, d)).max() < 1e-12
    assert np.abs(q @ q - np.eye(d)).max() < 1e-12


@pytest.mark.parametrize("norm", [1.0, 2.5, 5.0])
def test_unfiltered_or_equally_filtered_data_give_bayes_accuracy(norm: float) -> None:
    assert theory.clean_accuracy(0.0, 0.0, mean(100, norm)) == pytest.approx(bayes(norm), abs=1e-8)


@pytest.mark.parametrize(("a_minus", "a_plus", "norm"), [(0, 0.1, 1.0), (0, 0.3, 5.0), (0.4, 0.1, 2.5), (0.2, 0.3, 1.0)])
def test_exact_accuracy_agrees_with_200_000_samples(a_minus: float, a_plus: float, norm: float) -> None:
    mu, samples = mean(100, norm), 200_000
    exact, seen = theory.clean_accuracy(a_minus, a_plus, mu), theory.simulate(a_minus, a_plus, mu, samples, seed=1)
    assert abs(exact - seen) < 4 * math.sqrt(max(exact * (1 - exact), 1e-6) / samples)


@pytest.mark.parametrize("norm", [1.0, 2.5, 5.0])
@pytest.mark.parametrize("steps", [5, pytest.param(11, marks=pytest.mark.slow)])
def test_filtering_never_helps_and_the_bound_holds_on_the_whole_grid(norm: float, steps: int) -> None:
    mu = mean(100, norm)
    grid = np.linspace(0, 0.5, steps)
    for a_minus in grid:
        for a_plus in grid:
            exact = theory.clean_accuracy(a_minus, a_plus, mu)
            assert theory.clean_accuracy_bound(a_minus, a_plus, mu) >= exact - 1e-9, (a_minus, a_plus)
            assert exact <= bayes(norm) + 1e-8, (a_minus, a_plus)


def test_the_effect_grows_with_dimension() -> None:
    seen = [theory.clean_accuracy(0, 0.3, mean(d, 5.0)) for d in (8, 32, 100, 400)]
    assert seen == sorted(seen, reverse=True) and seen[0] > 0.99 and seen[-1] < 0.51


def test_blur_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\[0, 0.5\]"):
        theory.eigenvalues(0.6, 10)
