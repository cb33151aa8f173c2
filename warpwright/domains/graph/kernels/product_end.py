"""How a product's kernel ends: what follows element by element, a norm over groups of columns, and the store, of the result or of its reduced rows.

A tile's sums are [ROWS, COLUMNS] in registers. A norm whose groups of columns lie in one part of a tile takes their mean and variance there, in two
passes over what one thread or four neighbours hold, so the norm's input is never written. Of rows that only a reduction reads each part stores one
number a row: a sum, a largest or smallest number, or the logarithm of a sum of exponentials; the same reduction of those is that of the whole row.
"""

# mypy: ignore-errors
# --- generated programs hold what follows
import triton
import triton.language as tl

from warpwright.domains.graph.kernels.extrema import _larger, _smaller


@triton.jit
def _normed(v, SIZE: tl.constexpr, eps):
    """Return each group of SIZE neighbours of a row less its mean, over its standard deviation."""
    rows: tl.constexpr = v.shape[0]
    columns: tl.constexpr = v.shape[1]
    groups = tl.reshape(v, (rows, columns // SIZE, SIZE))
    centred = groups - tl.sum(groups, 2, keep_dims=True) * (1.0 / SIZE)
    variance = tl.sum(centred * centred, 2, keep_dims=True) * (1.0 / SIZE)
    return tl.reshape(centred * tl.rsqrt(variance + eps), (rows, columns))


@triton.jit
def _rows_reduced(v, column, n, REDUCE: tl.constexpr):
    """Return the rows' reduction over columns below n; an infinite largest number is not subtracted from the exponents."""
    seen = (column < n)[None, :]
    if REDUCE == "sum":
        reduced = tl.sum(tl.where(seen, v, 0.0), 1)
    elif REDUCE == "amin":
        reduced = tl.reduce(tl.where(seen, v, float("inf")), 1, _smaller)
    else:
        v = tl.where(seen, v, float("-inf"))
        reduced = tl.reduce(v, 1, _larger)
        if REDUCE == "logsumexp":
            base = tl.where(tl.abs(reduced) == float("inf"), 0.0, reduced)
            reduced = tl.log(tl.sum(tl.exp(v - base[:, None]), 1)) + base
    return reduced


@triton.jit
def _product_end(sums, y, row, column, m, n, q, ROWS: tl.constexpr, COLUMNS: tl.constexpr, END: tl.constexpr, REDUCE: tl.constexpr):
    rows, columns = row + tl.arange(0, ROWS), column + tl.arange(0, COLUMNS)
    if END is not None:
        sums = END(sums, rows, columns, m, n, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7])
    if REDUCE is not None:
        at = rows.to(tl.int64) * tl.cdiv(n, COLUMNS) + column // COLUMNS
        tl.store(y + at, _rows_reduced(sums, columns, n, REDUCE), mask=(rows < m) & (column < n))
    else:
        y.store([row, column], sums.to(y.dtype))


@triton.jit
def _product_ends(
    sums, y, row, column, m, n, q, ROWS: tl.constexpr, COLUMNS: tl.constexpr, END: tl.constexpr, PARTS: tl.constexpr, REDUCE: tl.constexpr,
    ONE: tl.constexpr,
):  # fmt: skip
    """End a tile's columns in two or four parts in turn, each by ONE, as `_product_end`: the shared memory that a part is written by, and read by
    where END reads a tensor like y."""
    half: tl.constexpr = COLUMNS // 2
    left, right = tl.split(tl.permute(tl.reshape(sums, (ROWS, 2, half)), (0, 2, 1)))
    if PARTS == 2:
        ONE(left, y, row, column, m, n, q, ROWS, half, END, REDUCE)
        ONE(right, y, row, column + half, m, n, q, ROWS, half, END, REDUCE)
    else:
        fourth: tl.constexpr = half // 2
        first, second = tl.split(tl.permute(tl.reshape(left, (ROWS, 2, fourth)), (0, 2, 1)))
        third, last = tl.split(tl.permute(tl.reshape(right, (ROWS, 2, fourth)), (0, 2, 1)))
        ONE(first, y, row, column, m, n, q, ROWS, fourth, END, REDUCE)
        ONE(second, y, row, column + fourth, m, n, q, ROWS, fourth, END, REDUCE)
        ONE(third, y, row, column + half, m, n, q, ROWS, fourth, END, REDUCE)
        ONE(last, y, row, column + half + fourth, m, n, q, ROWS, fourth, END, REDUCE)
