"""What class-wise filtering does to a Bayes classifier of a two-class Gaussian mixture, computed exactly.

Model (arXiv 2303.04278, section 3): classes y = -1, +1, equally likely, x ~ N(y*mu, I) in d dimensions. Class y is filtered by
[a_y, 1, a_y], that is by the tridiagonal Toeplitz matrix A_y = Q diag(D_y) Q with Q the orthonormal DST-I and
D_y[i] = 1 + 2 a_y cos(i pi / (d+1)). The Bayes classifier of the filtered data answers +1 where

    q(x) = x'Ax + b'x + c > 0,   A = A_-^-2 - A_+^-2,   b = 2 (A_-^-1 + A_+^-1) mu,   c = 2 sum_i ln(D_-[i] / D_+[i])

On *clean* data q is a sum of independent terms alpha z^2 + beta z + c in the basis Q, so that its distribution follows from
its characteristic function (Gil-Pelaez). A theorem of the paper bounds the accuracy by Chernoff terms; the bound here uses the
exact moment generating function and holds wherever that is finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.errors import UsageError

Vector = NDArray[np.float64]


def toeplitz(a: float, d: int) -> NDArray[np.float64]:
    """Return `[d, d]` the matrix that filters a signal of length d by [a, 1, a] with zero padding."""
    return np.eye(d) + a * (np.eye(d, k=1) + np.eye(d, k=-1))


def sine_basis(d: int) -> NDArray[np.float64]:
    """Return `[d, d]` the orthonormal DST-I: symmetric and its own inverse."""
    i = np.arange(1, d + 1)
    return np.sqrt(2 / (d + 1)) * np.sin(np.pi * np.outer(i, i) / (d + 1))


def eigenvalues(a: float, d: int) -> Vector:
    """Return `[d]` the eigenvalues of `toeplitz(a, d)` in the order of `sine_basis`."""
    if not 0 <= a <= 0.5:
        raise UsageError(f"expected a blur a in [0, 0.5], saw {a}", "beyond 0.5 the filter is not invertible for every d")
    return 1 + 2 * a * np.cos(np.arange(1, d + 1) * np.pi / (d + 1))


@dataclass(frozen=True)
class Boundary:
    """q(x) in the sine basis: sum of alpha z^2 + beta z, plus c. `nu` is the mean of class +1 there."""

    alpha: Vector
    beta: Vector
    c: float
    nu: Vector

    def __call__(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `[samples]` q at `z` `[samples, d]`."""
        return (self.alpha * z * z + self.beta * z).sum(-1) + self.c


def boundary(a_minus: float, a_plus: float, mu: Vector) -> Boundary:
    """Return the Bayes boundary of the filtered mixture."""
    d = len(mu)
    minus, plus = eigenvalues(a_minus, d), eigenvalues(a_plus, d)
    nu = sine_basis(d) @ mu
    return Boundary(minus**-2 - plus**-2, 2 * (1 / minus + 1 / plus) * nu, float(2 * np.log(minus / plus).sum()), nu)


def clean_accuracy(a_minus: float, a_plus: float, mu: Vector) -> float:
    """Return the accuracy on clean data of the Bayes classifier of the filtered data, to about 1e-9."""
    q = boundary(a_minus, a_plus, mu)
    return 0.5 * (_positive(q, q.nu) + 1 - _positive(q, -q.nu))


def clean_accuracy_bound(a_minus: float, a_plus: float, mu: Vector) -> float:
    """Return an upper bound of `clean_accuracy`: the mean of Chernoff bounds on each class's *correct* answers.

    Accuracy = (P(q > 0 | +1) + P(q < 0 | -1)) / 2, each of which is at most the smallest E exp(t q) over t of its sign.
    """
    q = boundary(a_minus, a_plus, mu)
    return 0.5 * (min(1.0, _chernoff(q, q.nu, +1)) + min(1.0, _chernoff(q, -q.nu, -1)))


def simulate(a_minus: float, a_plus: float, mu: Vector, samples: int, seed: int) -> float:
    """Return the same accuracy by drawing clean samples; standard error sqrt(p (1-p) / samples)."""
    q = boundary(a_minus, a_plus, mu)
    rng = np.random.default_rng(seed)
    right = 0
    for start in range(0, samples, 10_000):
        n = min(10_000, samples - start)
        y = rng.integers(0, 2, n) * 2 - 1
        right += int(((q(rng.standard_normal((n, len(mu))) + y[:, None] * q.nu) > 0) == (y > 0)).sum())
    return right / samples


def _log_mgf(q: Boundary, mean: Vector, s: NDArray[np.complexfloating[Any, Any]]) -> NDArray[np.complex128]:
    """ln E exp(s q(z)) for z ~ N(mean, I): `[len(s)]`, with s real or imaginary."""
    s = s[:, None]
    shrink = 1 - 2 * s * q.alpha
    terms = (s * q.alpha * mean**2 + s * q.beta * mean + 0.5 * (s * q.beta) ** 2) / shrink - 0.5 * np.log(shrink)
    return terms.sum(1) + s[:, 0] * q.c


def _moments(q: Boundary, mean: Vector) -> tuple[float, float]:
    centre = float((q.alpha * (1 + mean**2) + q.beta * mean).sum() + q.c)
    spread = float((2 * q.alpha**2 + (q.beta + 2 * q.alpha * mean) ** 2).sum())
    return centre, float(np.sqrt(spread))


def _positive(q: Boundary, mean: Vector) -> float:
    """P(q > 0) = 1/2 + 1/pi * integral over t > 0 of Im phi(t) / t (Gil-Pelaez 1951), panels of 24 Gauss points."""
    centre, spread = _moments(q, mean)
    if spread == 0:
        return float(centre > 0) if centre else 0.5
    nodes, weights = np.polynomial.legendre.leggauss(24)
    total, start, step = 0.0, 0.0, 0.1  # t in units of 1 / spread
    while True:
        t = start + step * (nodes + 1) / 2
        log_phi = _log_mgf(q, mean, 1j * t / spread)
        if max(np.ptp(log_phi.real), np.ptp(log_phi.imag)) > 6:  # 24 points resolve one turn and a factor e^6, not more
            step /= 2
            continue
        total += float((weights * np.exp(log_phi.real) * np.sin(log_phi.imag) / t).sum()) * step / 2
        start += step
        step *= 1.5
        if log_phi.real[-1] < -28:  # |phi| below 1e-12
            return 0.5 + total / np.pi


def _chernoff(q: Boundary, mean: Vector, sign: int) -> float:
    """Smallest E exp(t * sign * q) over t > 0 where it is finite (t < 1 / (2 max sign*alpha))."""
    largest = float((sign * q.alpha).max())
    _, spread = _moments(q, mean)
    end = min(0.5 / largest * (1 - 1e-9) if largest > 0 else np.inf, 60 / spread if spread else 1.0)
    t = np.concatenate([[0.0], np.geomspace(end * 1e-6, end, 500)])
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        log_bound = _log_mgf(q, mean, (sign * t).astype(np.complex128)).real
    return float(np.exp(np.nanmin(log_bound)))
