"""Two products of one left operand that end together, element by element: silu(x @ w) * (x @ v) and its like. What the technique of that name
puts in.

    y[m, n] = end(sum over k of x[m, k] w[n, k], sum over k of x[m, k] v[n, k])        bfloat16 or float16, y also float32

Ladder:
1. As `fused_product`, with two tiles of sums, ROWS x COLUMNS each, from one tile of x and one of each right operand: neither product is written, and
   x is read once for both.

Parameters: ROWS 64 or 128, COLUMNS 32 to 128, DEPTH 32 to 128 (powers of two), warps 4 or 8, stages 2 to 5, and programs a multiprocessor, 1
(which may be left out) or 2; a tile ends in two parts. Rows of x, w and v begin at multiples of 16 bytes.

Achieved: not timed yet. Two tiles of 128 x 128 use the registers, shared memory and copies of one of 128 x 256, with which `fused_product` reaches
630 to 680 TFLOP/s on an H200.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.sound import _launched  # noqa: I001

# --- generated programs hold what follows

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _gated_end(sums, more, y, row, column, m, n, q, ROWS: tl.constexpr, COLUMNS: tl.constexpr, END: tl.constexpr):
    rows, columns = row + tl.arange(0, ROWS), column + tl.arange(0, COLUMNS)
    y.store([row, column], END(sums, more, rows, columns, m, n, q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]).to(y.dtype))


@triton.jit
def _gated_product(
    x, w, v, y, q0, q1, q2, q3, q4, q5, q6, q7, m, n, k, programs,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, BY_ROWS: tl.constexpr, END: tl.constexpr,
    STAGES: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    q = (q0, q1, q2, q3, q4, q5, q6, q7)
    half: tl.constexpr = COLUMNS // 2
    down, across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    for tile in tl.range(tl.program_id(0), down * across, programs, flatten=FLATTEN):
        group = tile // (GROUP * across)
        tall = tl.minimum(down - group * GROUP, GROUP)
        row = (group * GROUP + tile % (GROUP * across) % tall) * ROWS
        column = tile % (GROUP * across) // tall * COLUMNS
        sums, more = tl.zeros((ROWS, COLUMNS), tl.float32), tl.zeros((ROWS, COLUMNS), tl.float32)
        for step in tl.range(0, tl.cdiv(k, DEPTH), num_stages=STAGES):
            a = x.load([row, step * DEPTH])
            if BY_ROWS:
                b = w.load([column, step * DEPTH]).T
                c = v.load([column, step * DEPTH]).T
            else:
                b = w.load([step * DEPTH, column])
                c = v.load([step * DEPTH, column])
            sums = tl.dot(a, b, sums, input_precision="tf32")
            more = tl.dot(a, c, more, input_precision="tf32")
        left, right = tl.split(tl.permute(tl.reshape(sums, (ROWS, 2, half)), (0, 2, 1)))
        more_left, more_right = tl.split(tl.permute(tl.reshape(more, (ROWS, 2, half)), (0, 2, 1)))
        _gated_end(left, more_left, y, row, column, m, n, q, ROWS, half, END)
        _gated_end(right, more_right, y, row, column + half, m, n, q, ROWS, half, END)


def gated_product(x, w, v, by_rows, end, operands, shape, kind=None):
    """Return end(x @ w.T, x @ v.T) for rows of w and v [n, k], or end(x @ w, x @ v) for [k, n]; x is [..., k].

    `operands` are rows of n numbers, [..., 1], or as the result. `kind`: the result's type, if it is not that of x.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            return gated_product(x, w, v, by_rows, end, operands, shape, kind)
    flat, w, v = (
        t if t.stride(1) == 1 and t.stride(0) * t.element_size() % 16 == 0 and t.data_ptr() % 16 == 0 else t.contiguous()
        for t in (x.reshape(-1, x.shape[-1]), w, v)
    )
    (m, k), n = flat.shape, w.shape[0 if by_rows else 1]
    rows, columns, depth, group, warps, stages, together = (*shape, 1)[:7]
    y = x.new_empty((*x.shape[:-1], n), dtype=kind)
    if y.numel() == 0:
        return y
    operands = [q.contiguous() for q in operands]
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 3
    programs = min(programs * together, triton.cdiv(m, rows) * triton.cdiv(n, columns))
    of_w, of_v = (TensorDescriptor.from_tensor(t, [columns, depth] if by_rows else [depth, columns]) for t in (w, v))
    _launched(_gated_product, (programs,), (
        TensorDescriptor.from_tensor(flat, [rows, depth]), of_w, of_v, TensorDescriptor.from_tensor(y.view(m, n), [rows, columns // 2]),
        *(*operands, *[flat] * 8)[:8], m, n, k, programs, rows, columns, depth, group, by_rows, end, stages, x.is_cuda,
    ), warps, stages)  # fmt: skip
    return y
