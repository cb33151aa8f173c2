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

What that takes for granted, the size of the results, is looked at once they are there (`suspects`). Where they are too small, the same model is
applied to the terms that are there (`small`): zeros may have met all that is large in a row.
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

    scaled: NDArray[np.float64]
    """[rows, k]: what was cut, of which the digits keep multiples of 2^-32."""
    chunks: NDArray[np.bool_]
    """[rows / 128, k / 128], rounded up: whether 128 elements of 128 rows are not all zero. The product leaves out those that are, of either side."""

    @property
    def norms(self) -> Floats:
        """[rows]: of the scaled rows."""
        return np.sqrt((self.scaled**2).sum(1)).astype(np.float32)

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
    stats = np.stack([alpha, np.where(nonzero > 0, large / x.shape[1], -1)], 1).astype(np.float32)
    whole = np.pad(clean != 0, [(0, -size % BLOCK) for size in x.shape])
    chunks: NDArray[np.bool_] = np.any(whole.reshape(len(whole) // BLOCK, BLOCK, -1, BLOCK), axis=(1, 3))
    return Slices(digits, scale, flags, stats, scaled, chunks)


def errors_of(level: int) -> tuple[float, float]:
    """Return the squared errors of a term: of the orders left out, and of rounding one side's last slice, over the other's square."""
    return (level - 1) * DIGIT**4 * 2.0 ** (-16 * level), 2.0 ** (-16 * (level - 1)) / 12


def relative_error(level: int, a_alpha: float, b_alpha: float) -> float:
    """Return the model's error of a product at `level`, over the root mean square of the result."""
    left_out, rounding = errors_of(level)
    return float(np.sqrt(left_out * a_alpha * b_alpha + rounding * (a_alpha + b_alpha)))


def tile_level(a: Floats, b: Floats, k: int) -> int:
    """Return the least level, 3 to 5, whose error is within float32's for blocks described by a and b: (alpha, share) each.

    Of up to eight terms that count one may be all, and float32 then errs by rounding it alone, which slices do as well; and such rows err up to seven
    times their blocks' mean: an eighth of that rounding is allowed.
    """
    terms = min(float(a[1]) * float(b[1]) * k, 4096)
    allowed = FLOAT32 * (np.sqrt(terms / 2) if terms > 8 else 1 / 8)
    return next((level for level in (3, 4) if relative_error(level, float(a[0]), float(b[0])) <= allowed), 5)


def floor(norms: Floats) -> float:
    """Return the bound of a result with rows of these norms, over the other row's norm and times sqrt(k) (int8_suspect.h)."""
    squares = norms[norms > 0].astype(np.float64) ** 2
    if not len(squares):
        return 0.0
    return float(min(0.25, 1.25 * 2.0 ** (-31 * (squares**2).sum() / squares.sum() ** 2)) * np.sqrt(squares.mean()))


def suspects(a: Slices, b: Slices) -> NDArray[np.bool_]:
    """Return which 16 rows of tiles of 128 x 128, [m / 16, n / 128], rounded up, are suspect: the results of a row or a column are much too small."""
    k, sums = a.digits.shape[2], orders(a, b, 2)
    high = np.abs(sums[0] + (sums[1] >> 8))
    found = np.zeros((-(-len(high) // 16), len(b.chunks)), bool)
    for strip, across in np.ndindex(*found.shape):
        rows, columns = slice(16 * strip, 16 * strip + 16), slice(BLOCK * across, BLOCK * (across + 1))
        part, a_norms, b_norms = high[rows, columns], a.norms[rows], b.norms[columns]
        small = (part.max(1) < a_norms * floor(b_norms) / np.sqrt(k)).any() or (part.max(0) < b_norms * floor(a_norms) / np.sqrt(k)).any()
        found[strip, across] = small and (a.chunks[strip // 8] & b.chunks[across]).any()
    return found


def small(a: Slices, b: Slices, results: Floats) -> NDArray[np.bool_]:
    """Return which results plain sums replace: where a square of 32 x 32 is suspect those rows and columns of it that are small and err four times as
    float32, columns in one half of the square or the other. `results`: those by slices."""
    (x, y), (p, q) = (side.scaled**2 for side in (a, b)), ((side.scaled != 0).astype(float) for side in (a, b))
    squares, counts, rounding = x @ y.T, p @ q.T, x @ q.T + p @ y.T
    sizes = np.abs(results.astype(np.float64)) * np.outer(a.scale, b.scale)
    found, doubtful = np.zeros((len(x), len(y)), bool), suspects(a, b)
    for row, column in np.ndindex(-(-len(found) // 32), -(-found.shape[1] // 32)):
        first = max(row - 4, 0) if 32 * row + 32 > len(found) else row  # at the end too few rows or columns may be there to tell
        doubt = doubtful[2 * first : 2 * row + 2, column // 4].any()
        if 32 * column + 32 > found.shape[1] and column >= 4:
            doubt |= doubtful[2 * row : 2 * row + 2, column // 4 - 1].any()
        if not doubt:
            continue
        errors = errors_of(tile_level(a.blocks[row // 4], b.blocks[column // 4], x.shape[1]))
        across = slice(32 * column, 32 * column + 32)
        least = max(quarter(b.norms[across]), floor(b.norms[BLOCK * (column // 4) : BLOCK * (column // 4 + 1)]))
        parts = [(slice(32 * row, 32 * row + 32), 1, a.norms[32 * row : 32 * row + 32, None] * least)]
        halves = [slice(start, min(start + 16, len(found))) for start in (32 * row, 32 * row + 16)]
        parts += [(half, 0, b.norms[None, across] * quarter(a.norms[half])) for half in halves]
        marked = np.zeros_like(found[parts[0][0], across])
        for rows, axis, bound in parts:
            at = rows, across
            if not found[at].size:
                continue
            terms, square, error = (part[at].sum(axis, keepdims=True) for part in (counts, squares, errors[0] * counts + errors[1] * rounding))
            errs = error > 16 * FLOAT32**2 * np.maximum(np.minimum(terms / (32 if axis else 16), 4096) / 2, 1) * square
            marked |= errs & (sizes[at].max(axis, keepdims=True) < bound / np.sqrt(x.shape[1]) + 2) & (bound > 0)
        found[parts[0][0], across] = marked
    return found


def quarter(norms: Floats) -> float:
    """Return a quarter of the root mean square of norms that are not zero, the largest that `floor` can be."""
    used = norms[norms > 0].astype(np.float64)
    return float(np.sqrt((used**2).mean()) / 4) if len(used) else 0.0


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
    """Return a @ b.T, each tile of 128 x 128 at the level that its rows need, by plain sums rows with Inf or NaN, and what is `small`."""
    x, y = cut(a), cut(b)
    out = by_slices(x, y)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(x.flags[:, None] | y.flags[None, :] | small(x, y, out), a @ b.T, out)


def by_slices(x: Slices, y: Slices) -> Floats:
    """Return the product with each tile of 128 x 128 at the level that its rows need."""
    levels = np.array([[tile_level(p, q, x.digits.shape[2]) for q in y.blocks] for p in x.blocks])
    spread = np.kron(levels, np.ones((BLOCK, BLOCK), int))[: len(x.flags), : len(y.flags)]
    out = np.zeros(spread.shape, np.float32)
    for level in np.unique(levels):
        out = np.where(spread == level, multiply(x, y, int(level)), out)
    return out
