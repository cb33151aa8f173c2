"""Products of which a triangle of tiles is computed: that of a matrix and its own transpose, where each tile is written twice, and one of which only
what lies on one side of the diagonal is kept. What the techniques of these names put in.

    y[b, i, j] = end(sum over k of x[b, i, k] x[b, j, k])          bfloat16 or float16, sums in float32; or x[b, k, i] x[b, k, j]
    y[b, i, j] = end(sum over k of x[b, i, k] w[b, j, k]) if j <= i + diagonal else 0              or w[b, k, j]; upper: if j >= i + diagonal

Ladder:
1. As `fused_product`: operands by TMA, one or two programs a multiprocessor, each takes tile after tile.
2. The triangle of T x T tiles is folded into a rectangle, so that no program meets a tile that is not there: row r of it is row T - 1 - r of the
   triangle, and then row r (or r - 1 where T is odd), which together have T + 1 (or T) tiles. Neighbours in time still share their operands.
3. With another factor and no second store: the result is set to zeros before, and the tiles of the other side are never met.

Parameters: SIDE 64 or 128, DEPTH 32 to 128 (powers of two), warps 4 or 8, stages 2 to 5, parts that a tile ends in, 2 or 4, and programs a
multiprocessor. Rows of x and y begin at multiples of 16 bytes; with several batches a tile lies in one of them, so SIDE divides their rows, and DEPTH
their terms where those are rows of x.

Achieved on an H200 (results/product_ends_h200): 8,192 x 4,096 in bfloat16 0.473 ms, 1.73 times the library; 64 of 512 x 4,096 in float16 1.40 times.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.product_end import _product_end, _product_ends  # noqa: I001
from warpwright.domains.graph.kernels.sound import _launched

# --- generated programs hold what follows

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _twice(sums, y, row, column, m, n, q, ROWS: tl.constexpr, COLUMNS: tl.constexpr, END: tl.constexpr, REDUCE: tl.constexpr):
    """Store a part of a tile, and its transpose, which begins at column and row; y: the result by blocks of both shapes, and its batch's first
    row."""
    below, above, first = y
    _product_end(sums, below, first + row, column, m, n, q, ROWS, COLUMNS, END, None)
    _product_end(tl.trans(sums), above, first + column, row, m, n, q, COLUMNS, ROWS, END, None)


@triton.jit
def _one_side(sums, y, row, column, m, n, q, ROWS: tl.constexpr, COLUMNS: tl.constexpr, END: tl.constexpr, REDUCE: tl.constexpr):
    """Store a part of a tile, with zeros beyond the diagonal; y: the result, its batch's first row, the diagonal, and is the upper side kept?"""
    of, first, diagonal, upper = y
    rows, columns = row + tl.arange(0, ROWS), column + tl.arange(0, COLUMNS)
    if END is not None:
        sums = END(sums, rows, columns, m, n, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7])
    beyond = (columns[None, :] - rows[:, None] - diagonal) * (1 - 2 * upper)  # columns to the other side
    _product_end(tl.where(beyond <= 0, sums, 0.0), of, first + row, column, m, n, q, ROWS, COLUMNS, None, None)


@triton.jit
def _symmetric_product(
    x, w, y, z, q0, q1, q2, q3, q4, q5, q6, q7, m, k, batches, programs, diagonal,
    SIDE: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, BY_ROWS: tl.constexpr, END: tl.constexpr,
    STAGES: tl.constexpr, PARTS: tl.constexpr, FLATTEN: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """KEPT: None, of x and its own transpose, all; or "lower" or "upper" of x by rows and w."""
    q = (q0, q1, q2, q3, q4, q5, q6, q7)
    down = tl.cdiv(m, SIDE)
    odd = down % 2
    across, tall = down + 1 - odd, (down + odd) // 2
    for tile in tl.range(tl.program_id(0), batches * across * tall, programs, flatten=FLATTEN):
        batch, place = tile // (across * tall), tile % (across * tall)
        group = place // (GROUP * across)
        high = tl.minimum(tall - group * GROUP, GROUP)
        r = group * GROUP + place % (GROUP * across) % high
        c = place % (GROUP * across) // high
        rest = c - (down - r)  # of the rectangle's row, beyond the first of the triangle's two
        row, column = tl.where(rest >= 0, r - odd, down - 1 - r) * SIDE, tl.where(rest >= 0, rest, c) * SIDE
        if KEPT == "upper":
            row, column = column, row
        first = batch * m
        sums = tl.zeros((SIDE, SIDE), tl.float32)
        for step in tl.range(0, tl.cdiv(k, DEPTH), num_stages=STAGES):
            if BY_ROWS or KEPT is not None:
                a = x.load([first + row, step * DEPTH])
            else:
                a = x.load([batch * k + step * DEPTH, row]).T
            if BY_ROWS:
                b = w.load([first + column, step * DEPTH]).T
            else:
                b = w.load([batch * k + step * DEPTH, column])
            sums = tl.dot(a, b, sums, input_precision="tf32")
        if KEPT is None:
            _product_ends(sums, (y, z, first), row, column, m, m, q, SIDE, SIDE, END, PARTS, None, _twice)
        else:
            _product_ends(sums, (y, first, diagonal, KEPT == "upper"), row, column, m, m, q, SIDE, SIDE, END, PARTS, None, _one_side)


def symmetric_product(x, by_rows, end, operands, shape):
    """Return end(x @ x.mT) for x [..., m, k], or end(x.mT @ x) for x [..., k, m] where not `by_rows`.

    `operands` are rows of m numbers, [m, 1], or as the result; with several batches there are none.
    """
    return _of_triangle(x, x, by_rows, end, operands, shape, None, 0)


def triangular_product(x, w, by_rows, end, operands, shape, kept, diagonal):
    """Return end(x @ w.mT) for x [..., m, k] and w [..., m, k], or end(x @ w) for w [..., k, m], where `kept` "lower" has it, on and below a diagonal
    of at most 0, or "upper", on and above one of at least 0, as torch.tril and torch.triu count them; zeros elsewhere. `operands` as above."""
    return _of_triangle(x, w, by_rows, end, operands, shape, kept, diagonal)


def _of_triangle(x, w, by_rows, end, operands, shape, kept, diagonal):
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            return _of_triangle(x, w, by_rows, end, operands, shape, kept, diagonal)
    (m, k) = x.shape[-2:] if by_rows or kept else x.shape[:-3:-1]
    flat, of_w = (
        t if t.stride(1) == 1 and t.stride(0) * t.element_size() % 16 == 0 and t.data_ptr() % 16 == 0 else t.contiguous()
        for t in (x.reshape(-1, x.shape[-1]), w.reshape(-1, w.shape[-1]))
    )
    side, depth, group, warps, stages, parts, together = shape
    y = x.new_zeros((*x.shape[:-2], m, m)) if kept else x.new_empty((*x.shape[:-2], m, m))
    if y.numel() == 0:
        return y
    batches, down = y.numel() // (m * m), triton.cdiv(m, side)
    operands = [q.contiguous() for q in operands]
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 3
    programs = min(programs * together, batches * down * (down + 1) // 2)
    by = [side, depth] if by_rows else [depth, side]
    _launched(_symmetric_product, (programs,), (
        TensorDescriptor.from_tensor(flat, [side, depth] if kept else by), TensorDescriptor.from_tensor(of_w, by),
        *(TensorDescriptor.from_tensor(y.view(-1, m), block) for block in ([side, side // parts], [side // parts, side])),
        *(*operands, *[flat] * 8)[:8], m, k, batches, programs, diagonal,
        side, depth, group, by_rows, end, stages, parts, x.is_cuda, kept,
    ), warps, stages)  # fmt: skip
    return y
