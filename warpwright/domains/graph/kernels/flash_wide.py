"""Attention with heads of more than 256 numbers: no block of rows can hold their sums, so that scores are kept in memory, for some rows at a time.

    s = scale q k^T,  by parts of a head's numbers;     y[:, slice] = (softmax or relu of s + bias, masked) v[:, slice],  slice by slice

1. One kernel makes the scores of as many rows as fill the GPU and 256 MB (`_flash_scores`): a product, by parts of 64 numbers of a head.
2. Another reads them once for each slice of v (`_flash_wide`): masks, softmax and the second product are those of `flash_attention`.
3. float32 operands by halves, as there: of q and k a part of a tile has a power of two of its own, and a part's sum begins anew.

Scores that are made once and read two to eight times cost 12 to 36 bytes a pair of memory traffic, of 1,024 numbers as much time as a tenth of the
products in float32; making them anew for each slice would be 1.5 to 4.5 times the products. Heads share keys, few rows are divided among blocks, and
masks, biases and slopes are as in `flash_attention`; a list of tiles is not taken.

Parameters: ROWS 16 to 128 and KEYS 16 to 128 (powers of two), warps 4 or 8, stages 1 to 4; heads of up to 1,024 numbers, and any above.

Achieved on an H200 (benchmarks/results/attention_h200): 72 to 97 TFLOP/s in float32, 1.9 to 2.3 times the fastest other program, 15 times
decoding; in 16 bits 176 to 247, 1.2 to 1.3 times with heads of 512, 48 decoding, and 0.88 of two products and a softmax with heads of 1,024.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.flash_attention import (  # noqa: I001
    _flash_add, _flash_begun, _flash_expanded, _flash_halves, _flash_join, _flash_product, _flash_seen, _flash_tanh, _flash_weights,
)  # fmt: skip

from warpwright.domains.graph.kernels.sound import _launched

# --- generated programs hold what follows

import torch
import triton
import triton.language as tl

_FLASH_SCORES = 1 << 28
"""Bytes of scores that are kept at a time, or as many as two blocks a multiprocessor need."""


@triton.jit
def _flash_piece(
    x, x_low, factors, at, real, tile, part, D: tl.constexpr, PARTS: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr, HALVES: tl.constexpr,
    CUT: tl.constexpr, PRODUCTS: tl.constexpr,
):  # fmt: skip
    """Return a part [BLOCK, PART] of a tile's numbers: its high half, its low one, and the factor of both. `at`: where the rows begin."""
    d = tl.arange(0, PART)
    if CUT:
        of = tl.cast(tile, tl.int64) * PARTS + part
        to = of * (BLOCK * PART) + tl.arange(0, BLOCK)[:, None] * PART + d[None, :]
        high, factor = tl.load(x + to), tl.load(factors + of)
        low = tl.load(x_low + to) if PRODUCTS == 3 else high
    else:
        d += part * PART
        whole = tl.load(x + at[:, None] + d[None, :], mask=real[:, None] & (d < D)[None, :], other=0.0)
        if HALVES:
            high, low, factor = _flash_halves(whole)
        else:
            high, low, factor = whole, whole, 1.0
    return high, low, factor


@triton.jit
def _flash_cut_piece(
    x, high, low, factors, x_b, x_h, x_n, heads, rows, count, D: tl.constexpr, PARTS: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    PRODUCTS: tl.constexpr,
):  # fmt: skip
    """Cut a part of a tile into halves, which `_flash_piece` reads."""
    tile, part = tl.program_id(0), tl.program_id(1)
    of, n, d = tile // count, tile % count * BLOCK + tl.arange(0, BLOCK), tl.arange(0, PART)
    at = (of // heads).to(tl.int64) * x_b + (of % heads).to(tl.int64) * x_h + n.to(tl.int64) * x_n
    a, b, factor = _flash_piece(x, x, factors, at, n < rows, tile, part, D, PARTS, PART, BLOCK, True, False, PRODUCTS)
    to = (tile.to(tl.int64) * PARTS + part) * (BLOCK * PART) + tl.arange(0, BLOCK)[:, None] * PART + d[None, :]
    tl.store(high + to, a)
    if PRODUCTS == 3:
        tl.store(low + to, b)
    tl.store(factors + tile * PARTS + part, factor)


@triton.jit
def _flash_scores(
    q, q_low, q_factor, k, k_low, k_factor, scores, q_b, q_h, q_n, k_b, k_h, k_n, heads, nq, nk, units, count, first, wide, scale, offset, window,
    D: tl.constexpr, PARTS: tl.constexpr, PART: tl.constexpr, GROUP: tl.constexpr, PACK: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    HALVES: tl.constexpr, CUT: tl.constexpr, PRODUCTS: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write a tile of scores, if any of its rows sees one of its keys."""
    unit, tile = first + tl.program_id(0), tl.program_id(1)
    block, of = unit % units, unit // units
    n_b, n_g = (of // heads).to(tl.int64), of % heads  # heads: of keys where PACK > 1, of queries else
    r = block * ROWS + tl.arange(0, ROWS)
    row, head = r // PACK, n_g * PACK + r % PACK
    of_k = n_g if PACK > 1 else n_g // GROUP
    last_row, inside = tl.minimum((block * ROWS + ROWS - 1) // PACK, nq - 1) + offset, True
    if CAUSAL:
        inside = tile * KEYS <= last_row
    if WINDOW:
        inside = inside & (tile * KEYS + KEYS > block * ROWS // PACK + offset - window + 1)
    if inside:
        col = tile * KEYS + tl.arange(0, KEYS)
        at_q = n_b * q_b + head.to(tl.int64) * q_h + row.to(tl.int64) * q_n
        at_k = n_b * k_b + of_k.to(tl.int64) * k_h + col.to(tl.int64) * k_n
        its = (n_b * (heads if PACK > 1 else heads // GROUP) + of_k) * count + tile
        s = tl.zeros((ROWS, KEYS), tl.float32)
        for part in tl.range(0, PARTS, num_stages=STAGES):
            a, a_low, a_factor = _flash_piece(q, q_low, q_factor, at_q, r < nq * PACK, unit, part, D, PARTS, PART, ROWS, HALVES, CUT, PRODUCTS)
            b, b_low, b_factor = _flash_piece(k, k_low, k_factor, at_k, col < nk, its, part, D, PARTS, PART, KEYS, HALVES, CUT, PRODUCTS)
            if HALVES:
                s = tl.fma(_flash_product(a, a_low, tl.trans(b), tl.trans(b_low), PRODUCTS), a_factor * b_factor, s)
            else:
                s = tl.dot(a, tl.trans(b), s)
        line = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        tl.store(scores + line[:, None] * wide + col[None, :], s * scale)


@triton.jit
def _flash_wide(
    scores, v, v_low, v_factor, mask, bias, slopes, sinks, y, kept, ends, v_b, v_h, v_n, y_b, y_h, y_n, m_b, m_h, m_n, m_k, a_b, a_h, a_n, a_k,
    s_b, s_h, s_n, heads, nq, nk, blocks, count, first, wide, offset, window, fill, cap,
    DV: tl.constexpr, DVP: tl.constexpr, PARTS: tl.constexpr, PART: tl.constexpr, GROUP: tl.constexpr, PACK: tl.constexpr, ROWS: tl.constexpr,
    KEYS: tl.constexpr, HALVES: tl.constexpr, CUT: tl.constexpr, PRODUCTS: tl.constexpr, FORM: tl.constexpr, CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr, MASK: tl.constexpr, BIAS: tl.constexpr, SLOPES: tl.constexpr, CAPPED: tl.constexpr, SINKS: tl.constexpr,
    SPLITS: tl.constexpr, DEAD: tl.constexpr, SHIFT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Join a slice of v by a block of rows, whose scores are in memory."""
    own, part = tl.program_id(0), tl.program_id(1)
    block, of = (first + own) % blocks, (first + own) // blocks
    n_b, n_g = (of // heads).to(tl.int64), of % heads
    r = block * ROWS + tl.arange(0, ROWS)
    row, head, real = r // PACK, n_g * PACK + r % PACK, r < nq * PACK
    of_k = n_g if PACK > 1 else n_g // GROUP
    mask += (n_b * m_b + head.to(tl.int64) * m_h + row.to(tl.int64) * m_n)[:, None]
    bias += (n_b * a_b + head.to(tl.int64) * a_h + row.to(tl.int64) * a_n)[:, None]
    slope = tl.load(slopes + head, mask=real, other=0.0)[:, None] * 1.4426950408889634 if SLOPES else 0.0
    acc = tl.zeros((ROWS, PART), tl.float32)
    norm, m = tl.zeros((ROWS,), tl.float32), tl.full((ROWS,), float("-inf"), tl.float32)
    if SINKS:
        of_sink = n_b * s_b + head.to(tl.int64) * s_h + row.to(tl.int64) * s_n
        norm, m = _flash_begun(sinks, of_sink, real, tl.program_id(2) == 0, SHIFT)
    low, high = 0, count
    if CAUSAL:
        last_row = tl.minimum((block * ROWS + ROWS - 1) // PACK, nq - 1) + offset
        high = tl.maximum(tl.minimum(high, (last_row + KEYS) // KEYS), 0)
    if WINDOW:
        low = tl.maximum(block * ROWS // PACK + offset - window + 1, 0) // KEYS
    if SPLITS > 1:
        each = (tl.maximum(high - low, 0) + SPLITS - 1) // SPLITS
        low += tl.program_id(2) * each
        high = tl.minimum(low + each, high)
    line = own.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    its = (n_b * (heads if PACK > 1 else heads // GROUP) + of_k) * count
    for tile in tl.range(low, high, num_stages=STAGES):
        col = tile * KEYS + tl.arange(0, KEYS)
        s = tl.load(scores + line[:, None] * wide + col[None, :])
        if CAPPED:
            s = _flash_tanh(s) * cap
        s, f = _flash_seen(
            s, 1.0, tile, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, KEYS, FORM, CAUSAL, WINDOW, MASK, BIAS, SLOPES, True
        )  # fmt: skip
        at_v = n_b * v_b + of_k.to(tl.int64) * v_h + col.to(tl.int64) * v_n
        b, b_low, b_factor = _flash_piece(v, v_low, v_factor, at_v, col < nk, its + tile, part, DV, PARTS, PART, KEYS, HALVES, CUT, PRODUCTS)
        p, decay, norm, m = _flash_weights(s, f, norm, m, FORM, SHIFT)
        if FORM == "softmax":
            acc = acc * decay[:, None]
        acc = _flash_add(acc, p, b, b_low, b_factor, HALVES, PRODUCTS, FORM)
    dv = part * PART + tl.arange(0, PART)
    if SPLITS > 1:
        line += tl.program_id(2).to(tl.int64) * tl.num_programs(0) * ROWS
        tl.store(kept + line[:, None] * DVP + dv[None, :], acc)
        if part == 0:
            tl.store(ends + line * 2, m)
            tl.store(ends + line * 2 + 1, norm)
    else:
        if FORM == "softmax":
            acc = acc / norm[:, None]
            if DEAD == "zero":
                acc = tl.where((norm == 0.0)[:, None], 0.0, acc)
        at = n_b * y_b + head.to(tl.int64) * y_h + row.to(tl.int64) * y_n
        tl.store(y + at[:, None] + dv[None, :], acc.to(y.dtype.element_ty), mask=real[:, None] & (dv < DV)[None, :])


def _flash_cut_parts(x, block, part, products):
    """Return the halves of x [b, h, n, d] by tiles of `block` rows and parts of `part` numbers, and their factors."""
    b, h, n, d = x.shape
    count, parts = triton.cdiv(n, block), triton.cdiv(d, part)
    high, low = x.new_empty((2, b * h * count * parts * block * part), dtype=torch.float16)
    factors = x.new_empty(b * h * count * parts)
    grid, sizes = (b * h * count, parts), (h, n, count, d, parts, part, block, products)
    _launched(_flash_cut_piece, grid, (x, high, low, factors, *x.stride()[:3], *sizes), 4)
    return high, low, factors


def flash_wide(
    q, k, v, scale, causal=False, offset=0, window=0, mask=None, hidden=False, fill=None, bias=None, tiles=None, form="softmax", dead="nan",
    products=3, turned=False, shape=(128, 64, 8, 2, 1), cap=0.0, sinks=None, slopes=None,
):  # fmt: skip
    """Return what flash_attention does, for heads of any size; `tiles` are not looked at."""
    if q.is_cuda and q.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(q.device):
            return flash_wide(
                q, k, v, scale, causal, offset, window, mask, hidden, fill, bias, tiles, form, dead, products, turned, shape, cap, sinks, slopes
            )  # fmt: skip
    lead = q.dim()
    if lead == 3:
        q, k, v = (x[:, None] for x in (q, k, v))
    b, h, nq, d = q.shape
    kv, nk, dv = k.shape[1], k.shape[2], v.shape[3]
    q, k, v = (x if x.stride(3) == 1 or x.shape[3] == 1 else x.contiguous() for x in (q, k, v))
    mask, bias = (x if x is None or x.stride(-1) * nk < 1 << 31 else x.contiguous() for x in (mask, bias))  # places in a tile are of 32 bits
    y = q.new_empty((b, nq, h, dv)).transpose(1, 2) if turned else q.new_empty((b, h, nq, dv))
    if y.numel() == 0:
        return y[:, 0] if lead == 3 else y
    halves = q.dtype == torch.float32
    products = products if halves else 1
    pack = h // kv if nq * (h // kv) <= 64 else 1
    rows, keys, warps, stages, cut = shape
    cut = bool(cut) and halves and pack == 1
    block, tile, part = max(rows, 128) if rows >= 64 else rows, 128, 64  # of the first product
    least = max(16, triton.next_power_of_2(dv))
    piece = min(least, 256 if not halves or rows <= 64 else 128)
    heads, units, ratio = h // pack, triton.cdiv(nq * pack, block), block // rows
    blocks, count, parts, pieces = units * ratio, triton.cdiv(nk, keys), triton.cdiv(d, part), triton.cdiv(dv, piece)
    wide = triton.cdiv(nk, tile) * tile
    mask, bias = (x if x is None else _flash_expanded(x, lead, (b, h, nq, nk)) for x in (mask, bias))
    sinks = sinks if sinks is None else sinks.expand(b, h, nq, 1)
    arrays = [q, q, q, k, k, k, v, v, v]
    if cut:
        arrays = [*_flash_cut_parts(q, block, part, products), *_flash_cut_parts(k, tile, part, products)]
        arrays += _flash_cut_parts(v, keys, piece, products)
    every = b * heads * units
    at_once = min(every, max(_FLASH_SCORES // (4 * block * wide), triton.cdiv(264, ratio * pieces)))
    splits = 1
    while at_once == every and splits < 64 and every * ratio * pieces * splits < 132 and count // (2 * splits) >= 4:
        splits *= 2
    scores = q.new_empty((at_once * block, wide), dtype=torch.float32)
    kept = q.new_empty((splits, every * block, least), dtype=torch.float32) if splits > 1 else y
    ends = q.new_empty((splits, every * block, 2), dtype=torch.float32) if splits > 1 else y
    base = 1.4426950408889634 if form == "softmax" else 1.0
    for first in range(0, every, at_once):
        here = min(at_once, every - first)
        _launched(_flash_scores, (here, triton.cdiv(nk, tile)), (
            *arrays[:6], scores, *q.stride()[:3], *k.stride()[:3], heads, nq, nk, units, triton.cdiv(nk, tile), first, wide,
            scale / cap if cap else scale * base, offset, window, d, parts, part, h // kv, pack, block, tile, halves, cut, products, causal,
            window > 0, 3 if not halves or cut else 1,
        ), 8 if block >= 128 else 4)  # fmt: skip
        _launched(_flash_wide, (here * ratio, pieces, splits), (
            scores, *arrays[6:], q if mask is None else mask.view(torch.uint8), q if bias is None else bias, q if slopes is None else slopes,
            q if sinks is None else sinks, y, kept, ends, *v.stride()[:3], *y.stride()[:3], *((0,) * 4 if mask is None else mask.stride()),
            *((0,) * 4 if bias is None else bias.stride()), *((0,) * 3 if sinks is None else sinks.stride()[:3]),
            heads, nq, nk, blocks, count, first * ratio, wide, offset, window,
            float("-inf") if fill is None else max(fill * base, -3e38), cap * base, dv, least, pieces, piece, h // kv, pack, rows, keys, halves, cut,
            products, form, causal, window > 0, 0 if mask is None else 2 if hidden else 1, bias is not None, slopes is not None, cap > 0,
            sinks is not None, splits, dead, 0.0 if q.dtype == torch.bfloat16 else 14.0, stages,
        ), warps, stages)  # fmt: skip
    if splits > 1:
        _launched(_flash_join, (every * block,), (
            kept, ends, y, *y.stride()[:3], heads, nq, blocks, dv, least, pack, rows, splits, form, False, dead,
        ), 1)  # fmt: skip
    return y[:, 0] if lead == 3 else y
