"""The arithmetic of int8_slices.cu and int8_product.cu in numpy, bit for bit where the kernels are exact: the definition they are compared with.

Error model, in scaled units (a row's largest element is just below 127.5). A slice past the first is uniform in [-128, 128), with root mean square
D = 73.9. With S slices and the orders 0 to S - 1, a term of the sum leaves out S - 1 products of slices whose orders add to S, each of about D^2,
weighed 2^(-8 S); and rounding the last slice errs by 2^(-8 (S - 1)) / sqrt(12) an element. Over the k terms of a sum, with n nonzero elements a row,

    error^2  =  (S - 1) D^4 2^(-16 S) n_a n_b / k  +  2^(-16 (S - 1)) / 12 (|a|^2 n_b + |b|^2 n_a) / k
    result^2 =  |a|^2 |b|^2 / k                                        (a and b independent; where they are not, the result is larger)

so that (error / result)^2 depends on alpha = n / |a|^2 alone. A float32 sum of t terms of random sign errs 2.4e-8 sqrt(t / 2) of its result (0.41
of 2^-24; measured on an H200: 2.0e-7 at k = 128, 1.1e-6 at 4096), and 2.4e-8 where one term dominates. Terms below 2^-10 of a row's largest do not
count (2^-12 let level 4 through for exp(4N) at k = 512 to 2048, where it errs 1.03 to 1.28 times float32), and no more than 4,096 do, because cuBLAS
splits long sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DIGIT = 73.9
FLOAT32 = 2.4e-8
Floats = NDArray[np.float32]
BLOCK = 128


@dataclass(frozen=True)
class Slices:
    """A float32 matrix cut into signed bytes."""

    digits: NDArray[np.int8]
    """[5, rows, k], most significant first."""
    scale: NDArray[np.float64]
    """[rows]"""
    flags: NDArray[np.bool_]
    """[rows]: Inf or NaN."""
    stats: Floats
    """[rows, 2]: alpha, and the share of large elements (-1 for a row of zeros)."""

    @property
    def blocks(self) -> Floats:
        """[rows / 128, 2]: alpha and share of 128 rows, as `tile_level` reads them."""
        described = []
        for start in range(0, len(self.stats), BLOCK):
            used = self.stats[start : start + BLOCK]
            used = used[used[:, 1] >= 0]
            alpha = max(used[:, 0].mean(), used[:, 0].max() / 8) if len(used) else 0.0
            described.append((alpha, used[:, 1].mean() if len(used) else 1.0))
        return np.array(described, np.float32)


def turned(k: int) -> Floats:
    """Return the sign of each of k elements: negative where its index has an odd number of bits set."""
    odd, index = np.zeros(k, np.int64), np.arange(k)
    while index.any():
        odd, index = odd ^ (index & 1), index >> 1
    return (1 - 2 * odd).astype(np.float32)


def cut(x: Floats) -> Slices:
    """Cut each row of x into five signed bytes an element, of every other element's negative (`turned`)."""
    flags: NDArray[np.bool_] = np.logical_not(np.isfinite(x).all(axis=1))
    clean = np.where(flags[:, None], np.float32(0), x)
    top = np.abs(clean).max(1).astype(np.float64)
    with np.errstate(divide="ignore"):
        scale = np.where(top > 0, 127.49 / top, 1.0)
    scale = (scale.view(np.int64) & ~((1 << 48) - 1)).view(np.float64)
    scaled = (clean * turned(x.shape[1])).astype(np.float64) * scale[:, None]
    w = np.rint(scaled * 2.0**32).astype(np.int64) + 0x80808080
    digits = np.stack([w >> 32, *(((w >> shift) & 255) - 128 for shift in (24, 16, 8, 0))]).astype(np.int8)
    squares, nonzero = (scaled**2).sum(1), (clean != 0).sum(1)
    large = ((np.abs(scaled) >= (top * scale / 1024)[:, None]) & (clean != 0)).sum(1)
    alpha = np.divide(nonzero, squares, out=np.zeros_like(squares), where=squares > 0)
    return Slices(digits, scale, flags, np.stack([alpha, np.where(nonzero > 0, large / x.shape[1], -1)], 1).astype(np.float32))


def relative_error(level: int, a_alpha: float, b_alpha: float) -> float:
    """Return the model's error of a product at `level`, over the root mean square of the result."""
    left_out = (level - 1) * DIGIT**4 * 2.0 ** (-16 * level) * a_alpha * b_alpha
    return float(np.sqrt(left_out + 2.0 ** (-16 * (level - 1)) / 12 * (a_alpha + b_alpha)))


def tile_level(a: Floats, b: Floats, k: int) -> int:
    """Return the least level, 3 to 5, whose error is within float32's for blocks described by a and b: (alpha, share) each."""
    terms = min(float(a[1]) * float(b[1]) * k, 4096) / 2
    allowed = FLOAT32 * np.sqrt(max(terms, 1.0))
    return next((level for level in (3, 4) if relative_error(level, float(a[0]), float(b[0])) <= allowed), 5)


def orders(a: Slices, b: Slices, level: int) -> list[NDArray[np.int64]]:
    """Return the exact sums of each order, [m, n] each."""
    x, y = a.digits.astype(np.float64), b.digits.astype(np.float64)  # products and sums stay below 2^53: exact, and BLAS is fast
    return [sum(x[i] @ y[order - i].T for i in range(order + 1)).astype(np.int64) for order in range(level)]  # type: ignore[union-attr]


def multiply(a: Slices, b: Slices, level: int) -> Floats:
    """Return a @ b.T at one level, combined as the kernel combines it; rows with Inf or NaN count as zeros."""
    sums = orders(a, b, level)
    high, rest = sums[0] + (sums[1] >> 8), ((sums[1] & 255) << 8) + sums[2]
    total = high * 65536.0 + rest
    if level > 3:
        low = sums[3].astype(np.float32) * np.float32(1 / 256)
        if level > 4:
            low += sums[4].astype(np.float32) * np.float32(1 / 65536)
        total = total + low
    with np.errstate(over="ignore", under="ignore"):
        return (total * ((2.0**-8 / a.scale)[:, None] * (2.0**-8 / b.scale)[None, :])).astype(np.float32)


def product(a: Floats, b: Floats) -> Floats:
    """Return a @ b.T, each tile of 128 x 128 at the level that its rows need, rows with Inf or NaN by plain sums."""
    x, y = cut(a), cut(b)
    levels = np.array([[tile_level(p, q, a.shape[1]) for q in y.blocks] for p in x.blocks])
    spread = np.kron(levels, np.ones((BLOCK, BLOCK), int))[: len(a), : len(b)]
    out = np.zeros((len(a), len(b)), np.float32)
    for level in np.unique(levels):
        out = np.where(spread == level, multiply(x, y, int(level)), out)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(x.flags[:, None] | y.flags[None, :], a @ b.T, out)
