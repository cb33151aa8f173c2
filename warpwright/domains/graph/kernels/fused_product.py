"""A product of matrices that ends with what follows it element by element: bias, activation, residual. What the technique of that name puts in.

    y[m, n] = end(sum over k of x[m, k] w[n, k])          bfloat16 or float16 (float32 is TF32, cut off), y also float32; or of each batch

Ladder:
1. Blocks of a result in registers, operands through shared memory by TMA, float32 sums.
2. As many programs as the GPU has multiprocessors, each takes tile after tile (`persistent`); tiles of `GROUP` rows of blocks are neighbours in
   time, so that L2 holds their operands. The end of a tile runs while the next one's operands come.
3. Two programs a multiprocessor (`together`), where tiles of few terms end as long as they are summed: one ends while the other sums. Tiles of 128 x
   128, three stages and four parts leave each half of the shared memory, and at most 114 of 128 registers (compiled for sm_90a).
4. Tiles that do not fill the programs once more, all of them where there are few, have their terms cut in `pieces` (split-K; behind whole tiles what
   stream-K does for its last wave). A piece's float32 sums go to memory, and whichever of a tile's comes last adds them all, from the first to the
   last, so that the result does not change from run to run, and ends the tile. No program waits for another one.

Parameters: ROWS 64 to 256, COLUMNS 64 to 256, DEPTH 32 to 128 (powers of two), warps 4 or 8, stages 2 to 5; and, which may be left out, parts that a
tile ends in, 2 or 4, programs a multiprocessor, 1 or 2, and pieces, 1 to 8 (4 of 256 columns). Rows of x and w begin at multiples of 16 bytes.

Achieved on an H200 (results/fused_product_h200): 8,192 x 4,096 -> 16,384 with gelu 715 TFLOP/s in bfloat16, cuBLAS without the end 720.
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
def _square(tile, down, across, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    """Return a tile's first row and column."""
    group = tile // (GROUP * across)
    tall = tl.minimum(down - group * GROUP, GROUP)
    return (group * GROUP + tile % (GROUP * across) % tall) * ROWS, tile % (GROUP * across) // tall * COLUMNS


@triton.jit
def _terms(
    x, w, row, column, begin, end, k, n, each,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BY_ROWS: tl.constexpr, BATCHED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Return a tile's sums of the terms from step `begin` to step `end`, of DEPTH terms each."""
    first = 0  # row of this batch's w
    if BATCHED:
        first = row // each * (n if BY_ROWS else k)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for step in tl.range(begin, end, num_stages=STAGES):
        a = x.load([row, step * DEPTH])
        if BY_ROWS:
            b = w.load([first + column, step * DEPTH]).T
        else:
            b = w.load([first + step * DEPTH, column])
        sums = tl.dot(a, b, sums, input_precision="tf32")
    return sums


@triton.jit
def _kept(sums, y, row, column, m, n, q, ROWS: tl.constexpr, COLUMNS: tl.constexpr, END: tl.constexpr, REDUCE: tl.constexpr):
    """Store a part of a piece's sums where the tile's last piece finds them; y: where the piece begins, and the columns of a tile."""
    piece, width = y
    tl.store(piece + tl.arange(0, ROWS)[:, None] * width + column + tl.arange(0, COLUMNS)[None, :], sums)


@triton.jit
def _joined(
    pieces, y, row, column, m, n, q, ROWS: tl.constexpr, COLUMNS: tl.constexpr, END: tl.constexpr, PARTS: tl.constexpr, REDUCE: tl.constexpr,
    PIECES: tl.constexpr,
):  # fmt: skip
    """End a tile by parts of its columns, with the sums of its pieces added from the first to the last."""
    width: tl.constexpr = COLUMNS // PARTS
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, width)[None, :]
    for part in tl.range(0, PARTS):
        sums = tl.zeros((ROWS, width), tl.float32)
        for piece in tl.static_range(PIECES):  # past the first-level cache, which may hold what stood there before
            sums += tl.load(pieces + piece * (ROWS * COLUMNS) + part * width + at, cache_modifier=".cg")
        _product_end(sums, y, row, column + part * width, m, n, q, ROWS, width, END, REDUCE)


@triton.jit
def _fused_product(
    x, w, y, q0, q1, q2, q3, q4, q5, q6, q7, m, n, k, programs, each, whole, pieces, arrived,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, BY_ROWS: tl.constexpr, END: tl.constexpr,
    STAGES: tl.constexpr, PARTS: tl.constexpr, REDUCE: tl.constexpr, BATCHED: tl.constexpr, FLATTEN: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    q = (q0, q1, q2, q3, q4, q5, q6, q7)
    down, across, steps = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS), tl.cdiv(k, DEPTH)
    for tile in tl.range(tl.program_id(0), whole, programs, flatten=FLATTEN):
        row, column = _square(tile, down, across, ROWS, COLUMNS, GROUP)
        sums = _terms(x, w, row, column, 0, steps, k, n, each, ROWS, COLUMNS, DEPTH, BY_ROWS, BATCHED, STAGES)
        _product_ends(sums, y, row, column, m, n, q, ROWS, COLUMNS, END, PARTS, REDUCE, _product_end)
    if PIECES > 1:
        for unit in tl.range(tl.program_id(0), (down * across - whole) * PIECES, programs):
            cut, piece = unit // PIECES, unit % PIECES
            row, column = _square(whole + cut, down, across, ROWS, COLUMNS, GROUP)
            begin, end = piece * steps // PIECES, (piece + 1) * steps // PIECES
            sums = _terms(x, w, row, column, begin, end, k, n, each, ROWS, COLUMNS, DEPTH, BY_ROWS, BATCHED, STAGES)
            first = pieces + cut * (PIECES * ROWS * COLUMNS)
            own = (first + piece * (ROWS * COLUMNS), COLUMNS)
            _product_ends(sums, own, 0, 0, m, n, q, ROWS, COLUMNS, None, PARTS, None, _kept)
            tl.debug_barrier()  # all of the block's numbers are written before one thread says so
            if tl.atomic_add(arrived + cut, 1, sem="acq_rel", scope="gpu") == PIECES - 1:
                _joined(first, y, row, column, m, n, q, ROWS, COLUMNS, END, PARTS, REDUCE, PIECES)


def fused_product(x, w, by_rows, end, operands, shape, kind=None, reduce=None):
    """Return end(x @ w.T) for rows of w [n, k], or end(x @ w) for w [k, n]; x is [..., k].

    Or w is [..., n, k] or [..., k, n] for as many batches as x [..., m, k] has; a tile lies in one, so ROWS divides m, and DEPTH k but for w by rows.
    `operands` are rows of n numbers, [..., 1], or as the result. `kind`: the result's type, if it is not that of x. `reduce`, sum, amax, amin or
    logsumexp: return that of each part of a row instead [..., parts], in float32.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            return fused_product(x, w, by_rows, end, operands, shape, kind, reduce)
    n, batched, each = w.shape[-2 if by_rows else -1], w.dim() > 2, x.shape[-2]
    flat, w = (
        t if t.stride(1) == 1 and t.stride(0) * t.element_size() % 16 == 0 and t.data_ptr() % 16 == 0 else t.contiguous()
        for t in (x.reshape(-1, x.shape[-1]), w.reshape(-1, w.shape[-1]))
    )
    m, k = flat.shape
    rows, columns, depth, group, warps, stages, parts, together, pieces = (*shape, *(2, 1, 1)[len(shape) - 6 :])
    part = columns // parts
    y = x.new_empty((*x.shape[:-1], triton.cdiv(n, part) if reduce else n), dtype=torch.float32 if reduce else kind)
    if y.numel() == 0:
        return y
    operands = [q.contiguous() for q in operands]
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 3
    programs, tiles = programs * together, triton.cdiv(m, rows) * triton.cdiv(n, columns)
    whole = tiles if pieces == 1 else tiles // programs * programs
    cut = tiles - whole
    programs = min(programs, tiles if not cut else programs if whole else cut * pieces)
    kept, arrived = (y.new_empty(cut * pieces, rows, columns, dtype=torch.float32), y.new_zeros(cut, dtype=torch.int32)) if cut else (y, y)
    of_w = TensorDescriptor.from_tensor(w, [columns, depth] if by_rows else [depth, columns])
    of_y = y if reduce else TensorDescriptor.from_tensor(y.view(m, n), [rows, part])
    _launched(_fused_product, (programs,), (
        TensorDescriptor.from_tensor(flat, [rows, depth]), of_w, of_y, *(*operands, *[flat] * 8)[:8], m, n, k, programs, each if batched else 0,
        whole, kept, arrived, rows, columns, depth, group, by_rows, end, stages, parts, reduce, batched, x.is_cuda, pieces if cut else 1,
    ), warps, stages)  # fmt: skip
    return y
