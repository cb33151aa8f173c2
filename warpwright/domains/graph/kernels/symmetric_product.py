"""A product of a matrix and its own transpose: the tiles on and below the diagonal are computed, and each is written twice. What the technique of
that name puts in.

    y[b, i, j] = end(sum over k of x[b, i, k] x[b, j, k])          bfloat16 or float16, sums in float32; or x[b, k, i] x[b, k, j]

Ladder:
1. As `fused_product`: operands by TMA, one or two programs a multiprocessor, each takes tile after tile.
2. The triangle of T x T tiles is folded into a rectangle, so that no program meets a tile that is not there: row r of it is row T - 1 - r of the
   triangle, and then row r (or r - 1 where T is odd), which together have T + 1 (or T) tiles. Neighbours in time still share their operands.

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
def _symmetric_product(
    x, y, z, q0, q1, q2, q3, q4, q5, q6, q7, m, k, batches, programs,
    SIDE: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, BY_ROWS: tl.constexpr, END: tl.constexpr,
    STAGES: tl.constexpr, PARTS: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
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
        first = batch * m
        sums = tl.zeros((SIDE, SIDE), tl.float32)
        for step in tl.range(0, tl.cdiv(k, DEPTH), num_stages=STAGES):
            if BY_ROWS:
                a = x.load([first + row, step * DEPTH])
                b = x.load([first + column, step * DEPTH]).T
            else:
                a = x.load([batch * k + step * DEPTH, row]).T
                b = x.load([batch * k + step * DEPTH, column])
            sums = tl.dot(a, b, sums, input_precision="tf32")
        _product_ends(sums, (y, z, first), row, column, m, m, q, SIDE, SIDE, END, PARTS, None, _twice)


def symmetric_product(x, by_rows, end, operands, shape):
    """Return end(x @ x.mT) for x [..., m, k], or end(x.mT @ x) for x [..., k, m] where not `by_rows`.

    `operands` are rows of m numbers, [m, 1], or as the result; with several batches there are none.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            return symmetric_product(x, by_rows, end, operands, shape)
    (m, k) = x.shape[-2:] if by_rows else x.shape[:-3:-1]
    flat = x.reshape(-1, x.shape[-1])
    if not (flat.stride(1) == 1 and flat.stride(0) * flat.element_size() % 16 == 0 and flat.data_ptr() % 16 == 0):
        flat = flat.contiguous()
    side, depth, group, warps, stages, parts, together = shape
    y = x.new_empty((*x.shape[:-2], m, m))
    if y.numel() == 0:
        return y
    batches, down = y.numel() // (m * m), triton.cdiv(m, side)
    operands = [q.contiguous() for q in operands]
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 3
    programs = min(programs * together, batches * down * (down + 1) // 2)
    _launched(_symmetric_product, (programs,), (
        TensorDescriptor.from_tensor(flat, [side, depth] if by_rows else [depth, side]),
        *(TensorDescriptor.from_tensor(y.view(-1, m), block) for block in ([side, side // parts], [side // parts, side])),
        *(*operands, *[flat] * 8)[:8], m, k, batches, programs,
        side, depth, group, by_rows, end, stages, parts, x.is_cuda,
    ), warps, stages)  # fmt: skip
    return y
