"""The gradients of attention, whose scores are made again tile by tile (Dao et al., arXiv 2205.14135). What a training step's technique puts in.

    p = exp2(s - m) / sum,   ds = p (dy v^T - delta),   delta[i] = dy[i] y[i]
    dq = scale ds k,   dk = scale ds^T q,   dv = p^T dy

With a soft cap, s = c tanh(scale q k / c), ds is multiplied with 1 - tanh^2. Of a sink, whose weight no value has, ds = -p delta.

1. `_flash_delta` makes delta; `_flash_of_rows` goes over the keys of a block of rows and sums dq; `_flash_of_keys` goes over the rows of a block of
   keys, and the heads that share it, and sums dk and dv. No atomic additions: two runs give the same.
2. Each product of float32 is three of float16 halves, as in `flash_attention`; p and ds are cut with a power of two for each tile.
3. q, k, v and dy are cut once, by a kernel before, and not by each block anew.

Where one score of a row is so far above the others that its weight rounds to 1, the gradient of the scores is 0 by torch's formula, and here the
difference of two roundings of dy v^T: as small as float32's error of dy v^T, but not 0.

Biases and masks have no gradients here. Parameters: OWN rows or keys of a block and OTHER of a tile, 16 to 128 (powers of two), warps 4 or 8, stages
1 to 3; heads of up to 256 numbers.

Achieved on an H200 (benchmarks/results/attention_h200), forward and backward in float32: 50 to 63 TFLOP/s with heads of 64 and 128, 27 with 96, which
is 1.1 to 4.7 times the fastest other program, and 22 with 256, half of what is written out; in 16 bits 149 to 304, which is 0.51 to 0.79 of cuDNN,
and 7.5 times it with a window.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.flash_attention import (  # noqa: I001
    _flash_cut, _flash_expanded, _flash_fetch, _flash_halves, _flash_product, _flash_seen, _flash_tanh, flash_attention,
)  # fmt: skip

from warpwright.domains.graph.kernels.sound import _launched

# --- generated programs hold what follows

import torch
import triton
import triton.language as tl


@triton.jit
def _flash_cut_tile(
    x, high, low, factor, x_b, x_h, x_n, heads, rows, count, D: tl.constexpr, DP: tl.constexpr, BLOCK: tl.constexpr, PRODUCTS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    _flash_cut(x, high, low, factor, x_b, x_h, x_n, heads, rows, program % count, program // count, count, D, DP, BLOCK, PRODUCTS)


@triton.jit
def _flash_delta(y, dy, delta, y_b, y_h, y_n, g_b, g_h, g_n, h, nq, blocks, DV: tl.constexpr, DVP: tl.constexpr, ROWS: tl.constexpr):
    """Write the sum of each row of dy y."""
    of, row = tl.program_id(0) // blocks, tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)
    n_b, n_h, d = (of // h).to(tl.int64), (of % h).to(tl.int64), tl.arange(0, DVP)
    inside = (row < nq)[:, None] & (d < DV)[None, :]
    a = tl.load(y + n_b * y_b + n_h * y_h + row[:, None].to(tl.int64) * y_n + d[None, :], mask=inside, other=0.0).to(tl.float32)
    b = tl.load(dy + n_b * g_b + n_h * g_h + row[:, None].to(tl.int64) * g_n + d[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(delta + of.to(tl.int64) * nq + row, tl.sum(a * b, 1), mask=row < nq)


@triton.jit
def _flash_again(
    q, q_low, q_factor, k, k_low, k_factor, v, v_low, v_factor, g, g_low, g_factor, ends, delta, tile, mask, m_k, bias, a_k, row, real, nk, scale,
    offset, window, fill, cap, KEYS: tl.constexpr, HALVES: tl.constexpr, PRODUCTS: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    MASK: tl.constexpr, FILLED: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DEAD: tl.constexpr, SHIFT: tl.constexpr,
):  # fmt: skip
    """Return a tile's weights and the gradients of its scores. `ends`, `delta`: where those of the rows are."""
    s = _flash_product(q, q_low, tl.trans(k), tl.trans(k_low), PRODUCTS)
    f = q_factor * k_factor * scale
    if HALVES:
        f = tl.maximum(f, 1.1754943508222875e-38, propagate_nan=tl.PropagateNan.ALL)
    if CAPPED:
        bent = _flash_tanh(s * f)
        s = bent * cap
        f = 1.0
    s, f = _flash_seen(
        s, f, tile, mask, m_k, bias, a_k, 0.0, row, real, nk, offset, window, fill, KEYS, "softmax", CAUSAL, WINDOW, MASK, BIAS, 0, True
    )  # fmt: skip
    m, norm = tl.load(ends, mask=real, other=0.0), tl.load(ends + 1, mask=real, other=1.0)
    known, part = tl.where(m == float("-inf"), 0.0, m), 1.0 / norm
    if DEAD == "zero":
        part = tl.where(norm == 0.0, 0.0, part)
    power = tl.fma(s, f, (SHIFT - known)[:, None])
    if SHIFT > 0:
        power = tl.minimum(power, SHIFT + 1.0, propagate_nan=tl.PropagateNan.ALL)
    p = tl.exp2(power) * part[:, None]
    dp = _flash_product(g, g_low, tl.trans(v), tl.trans(v_low), PRODUCTS) * (g_factor * v_factor)
    ds = p * (dp - tl.load(delta, mask=real, other=0.0)[:, None])
    if CAPPED:
        ds = ds * (1.0 - bent * bent)
    if FILLED:  # a number stands in the score's place
        col = tile * KEYS + tl.arange(0, KEYS)
        seen = tl.load(mask + col[None, :] * m_k, mask=real[:, None] & (col < nk)[None, :], other=0)
        ds = tl.where((seen != 0) if MASK == 1 else (seen == 0), ds, 0.0)
    return p, ds


@triton.jit
def _flash_joined(acc, weights, x, x_low, x_factor, HALVES: tl.constexpr, PRODUCTS: tl.constexpr):
    """Add weights times what a tile holds."""
    if HALVES:
        high, low, factor = _flash_halves(weights)
        acc = tl.fma(_flash_product(high, low, x, x_low, PRODUCTS), factor * x_factor, acc)
    else:
        acc = tl.dot(weights.to(x.dtype), x, acc)
    return acc


@triton.jit
def _flash_of_rows(
    q, q_low, q_factor, k, k_low, k_factor, v, v_low, v_factor, g, g_low, g_factor, ends, delta, mask, bias, dq,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, g_b, g_h, g_n, m_b, m_h, m_n, m_k, a_b, a_h, a_n, a_k,
    h, nq, nk, blocks, count, scale, back, offset, window, fill, cap,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    HALVES: tl.constexpr, CUT: tl.constexpr, PRODUCTS: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr,
    FILLED: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DEAD: tl.constexpr, SHIFT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write dq of a block of rows."""
    block, of = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    n_b, n_h = (of // h).to(tl.int64), (of % h).to(tl.int64)
    n_k, first = n_h // GROUP, tl.cast(block, tl.int64) * ROWS
    row = block * ROWS + tl.arange(0, ROWS)
    real = row < nq
    q += n_b * q_b + n_h * q_h
    q_low += n_b * q_b + n_h * q_h
    g += n_b * g_b + n_h * g_h
    g_low += n_b * g_b + n_h * g_h
    k += n_b * k_b + n_k * k_h
    k_low += n_b * k_b + n_k * k_h
    v += n_b * v_b + n_k * v_h
    v_low += n_b * v_b + n_k * v_h
    if CUT:
        q_factor += of * blocks
        g_factor += of * blocks
        k_factor += (n_b * (h // GROUP) + n_k) * count
        v_factor += (n_b * (h // GROUP) + n_k) * count
    a, a_low, a_factor = _flash_fetch(q, q_low, q_factor, q_n, first, block, nq, D, DP, ROWS, HALVES, CUT, PRODUCTS, True)
    o, o_low, o_factor = _flash_fetch(g, g_low, g_factor, g_n, first, block, nq, DV, DVP, ROWS, HALVES, CUT, PRODUCTS, True)
    mask += (n_b * m_b + n_h * m_h + row.to(tl.int64) * m_n)[:, None]
    bias += (n_b * a_b + n_h * a_h + row.to(tl.int64) * a_n)[:, None]
    line = of.to(tl.int64) * nq + row
    low, high = 0, count
    if CAUSAL:
        high = tl.maximum(tl.minimum(high, (tl.minimum(block * ROWS + ROWS, nq) - 1 + offset + KEYS) // KEYS), 0)
    if WINDOW:
        low = tl.maximum(block * ROWS + offset - window + 1, 0) // KEYS
    acc = tl.zeros((ROWS, DP), tl.float32)
    for tile in tl.range(low, high, num_stages=STAGES):
        at = tl.cast(tile, tl.int64) * KEYS
        b, b_low, b_factor = _flash_fetch(k, k_low, k_factor, k_n, at, tile, nk, D, DP, KEYS, HALVES, CUT, PRODUCTS, True)
        c, c_low, c_factor = _flash_fetch(v, v_low, v_factor, v_n, at, tile, nk, DV, DVP, KEYS, HALVES, CUT, PRODUCTS, True)
        _, ds = _flash_again(
            a, a_low, a_factor, b, b_low, b_factor, c, c_low, c_factor, o, o_low, o_factor, ends + line * 2, delta + line, tile, mask, m_k, bias, a_k,
            row, real, nk, scale, offset, window, fill, cap, KEYS, HALVES, PRODUCTS, CAUSAL, WINDOW, MASK, FILLED, BIAS, CAPPED, DEAD, SHIFT
        )  # fmt: skip
        acc = _flash_joined(acc, ds, b, b_low, b_factor, HALVES, PRODUCTS)
    d = tl.arange(0, DP)
    tl.store(dq + line[:, None] * D + d[None, :], (acc * back).to(dq.dtype.element_ty), mask=real[:, None] & (d < D)[None, :])


@triton.jit
def _flash_of_keys(
    q, q_low, q_factor, k, k_low, k_factor, v, v_low, v_factor, g, g_low, g_factor, ends, delta, mask, bias, dk, dv,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, g_b, g_h, g_n, m_b, m_h, m_n, m_k, a_b, a_h, a_n, a_k,
    h, nq, nk, blocks, count, scale, back, offset, window, fill, cap,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    HALVES: tl.constexpr, CUT: tl.constexpr, PRODUCTS: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr,
    FILLED: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DEAD: tl.constexpr, SHIFT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write dk and dv of a block of keys, of all heads that share it."""
    tile, of = tl.program_id(0) % count, tl.program_id(0) // count
    kv = h // GROUP
    n_b, n_k = (of // kv).to(tl.int64), (of % kv).to(tl.int64)
    at = tl.cast(tile, tl.int64) * KEYS
    k += n_b * k_b + n_k * k_h
    k_low += n_b * k_b + n_k * k_h
    v += n_b * v_b + n_k * v_h
    v_low += n_b * v_b + n_k * v_h
    if CUT:
        k_factor += of * count
        v_factor += of * count
    b, b_low, b_factor = _flash_fetch(k, k_low, k_factor, k_n, at, tile, nk, D, DP, KEYS, HALVES, CUT, PRODUCTS, True)
    c, c_low, c_factor = _flash_fetch(v, v_low, v_factor, v_n, at, tile, nk, DV, DVP, KEYS, HALVES, CUT, PRODUCTS, True)
    low, high = 0, blocks
    if CAUSAL:
        low = tl.minimum(tl.maximum(tile * KEYS - offset, 0) // ROWS, blocks)
    if WINDOW:
        high = tl.minimum(tl.maximum(tile * KEYS + KEYS - 1 + window - offset + ROWS - 1, 0) // ROWS, blocks)
    acc_k, acc_v = tl.zeros((KEYS, DP), tl.float32), tl.zeros((KEYS, DVP), tl.float32)
    for step in tl.range(0, GROUP * tl.maximum(high - low, 0), num_stages=STAGES):
        n_h, block = n_k * GROUP + step // (high - low), low + step % (high - low)
        row, first = block * ROWS + tl.arange(0, ROWS), tl.cast(block, tl.int64) * ROWS
        line = (n_b * h + n_h) * nq + row
        in_q, in_g, in_f = n_b * q_b + n_h * q_h, n_b * g_b + n_h * g_h, (n_b * h + n_h) * blocks if CUT else 0
        a, a_low, a_factor = _flash_fetch(
            q + in_q, q_low + in_q, q_factor + in_f, q_n, first, block, nq, D, DP, ROWS, HALVES, CUT, PRODUCTS, True)  # fmt: skip
        o, o_low, o_factor = _flash_fetch(
            g + in_g, g_low + in_g, g_factor + in_f, g_n, first, block, nq, DV, DVP, ROWS, HALVES, CUT, PRODUCTS, True)  # fmt: skip
        p, ds = _flash_again(
            a, a_low, a_factor, b, b_low, b_factor, c, c_low, c_factor, o, o_low, o_factor, ends + line * 2, delta + line, tile,
            mask + (n_b * m_b + n_h * m_h + row.to(tl.int64) * m_n)[:, None], m_k, bias + (n_b * a_b + n_h * a_h + row.to(tl.int64) * a_n)[:, None],
            a_k, row, row < nq, nk, scale, offset, window, fill, cap, KEYS, HALVES, PRODUCTS, CAUSAL, WINDOW, MASK, FILLED, BIAS, CAPPED, DEAD, SHIFT
        )  # fmt: skip
        acc_v = _flash_joined(acc_v, tl.trans(p), o, o_low, o_factor, HALVES, PRODUCTS)
        acc_k = _flash_joined(acc_k, tl.trans(ds), a, a_low, a_factor, HALVES, PRODUCTS)
    d, e, col = tl.arange(0, DP), tl.arange(0, DVP), tile * KEYS + tl.arange(0, KEYS)
    to = (of.to(tl.int64) * nk + col)[:, None]
    tl.store(dk + to * D + d[None, :], (acc_k * back).to(dk.dtype.element_ty), mask=(col < nk)[:, None] & (d < D)[None, :])
    tl.store(dv + to * DV + e[None, :], acc_v.to(dv.dtype.element_ty), mask=(col < nk)[:, None] & (e < DV)[None, :])


def _flash_cut_tiles(x, block, wide, products):
    """Return the halves of x [b, h, n, d] by tiles of `block` rows, with zeros behind, and their factors."""
    b, h, n, d = x.shape
    count = triton.cdiv(n, block)
    high, low = x.new_empty((2, b, h, count * block, wide), dtype=torch.float16)
    factor = x.new_empty(b * h * count)
    _launched(_flash_cut_tile, (b * h * count,), (x, high, low, factor, *x.stride()[:3], h, n, count, d, wide, block, products), 4)
    return [high, low, factor]


def flash_forward(
    q, k, v, scale, causal=False, offset=0, window=0, mask=None, hidden=False, fill=None, bias=None, tiles=None, form="softmax", dead="nan",
    products=3, turned=False, shape=(128, 64, 8, 2, 1), cap=0.0, sinks=None,
):  # fmt: skip
    """Return what flash_attention does, and what flash_backward needs of its rows: their largest scores and sums, [b, h, nq, 2]."""
    return flash_attention(
        q, k, v, scale, causal, offset, window, mask, hidden, fill, bias, tiles, form, dead, products, turned, shape, cap, sinks,
        keep=True)  # fmt: skip


def flash_backward(
    dy, q, k, v, y, ends, scale, causal=False, offset=0, window=0, mask=None, hidden=False, fill=None, bias=None, dead="nan", products=3,
    shape=(64, 64, 8, 2, 1), cap=0.0,
):  # fmt: skip
    """Return the gradients of q, k and v from that of y, and from y and `ends` of flash_forward. `shape`: of a block own, of a tile the others."""
    if q.is_cuda and q.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(q.device):
            return flash_backward(dy, q, k, v, y, ends, scale, causal, offset, window, mask, hidden, fill, bias, dead, products, shape, cap)
    lead, plain = q.dim(), (q, k, v)
    if lead == 3:
        dy, q, k, v, y = (x[:, None] for x in (dy, q, k, v, y))
    b, h, nq, d = q.shape
    kv, nk, dv = k.shape[1], k.shape[2], v.shape[3]
    if 0 in (b, h, nq, nk, dv, d):
        return tuple(torch.zeros(x.shape, dtype=x.dtype, device=x.device) for x in plain)
    dy, q, k, v, y = (x if (x.stride(3) == 1 or x.shape[3] == 1) and x.stride(2) < 1 << 23 else x.contiguous() for x in (dy, q, k, v, y))
    mask, bias = (x if x is None or x.stride(-1) * nk < 1 << 31 else x.contiguous() for x in (mask, bias))  # places in a tile are of 32 bits
    mask, bias = (x if x is None else _flash_expanded(x, lead, (b, h, nq, nk)) for x in (mask, bias))
    halves = q.dtype == torch.float32
    own, other, warps, stages, cut = shape
    cut, products = bool(cut) and halves and own == other, products if halves else 1
    dp, dvp = max(triton.next_power_of_2(d), 16), max(triton.next_power_of_2(dv), 16)
    dq, dk, dv_ = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    delta = q.new_empty((b, h, nq), dtype=torch.float32)
    parts = triton.cdiv(nq, 32)
    _launched(_flash_delta, (b * h * parts,), (y, dy, delta, *y.stride()[:3], *dy.stride()[:3], h, nq, parts, dv, dvp, 32), 4)
    arrays = [q, q, q, k, k, k, v, v, v, dy, dy, dy]
    if cut:
        arrays = [part for x, wide in ((q, dp), (k, dp), (v, dvp), (dy, dvp)) for part in _flash_cut_tiles(x, own, wide, products)]
    strides = [stride for x in arrays[::3] for stride in x.stride()[:3]]
    strides += [*((0,) * 4 if mask is None else mask.stride()), *((0,) * 4 if bias is None else bias.stride())]
    masks = [q if mask is None else mask.view(torch.uint8), q if bias is None else bias]
    base = 1.4426950408889634
    numbers = [scale / cap if cap else scale * base, scale, offset, window, float("-inf") if fill is None else max(fill * base, -3e38), cap * base]
    known = [d, dp, dv, dvp, h // kv]
    forms = [halves, cut, products, causal, window > 0, 0 if mask is None else 2 if hidden else 1, mask is not None and fill is not None,
             bias is not None, cap > 0, dead, 0.0 if q.dtype == torch.bfloat16 else 14.0, stages]  # fmt: skip
    blocks, count = triton.cdiv(nq, own), triton.cdiv(nk, other)
    _launched(_flash_of_rows, (b * h * blocks,), (
        *arrays, ends, delta, *masks, dq, *strides, h, nq, nk, blocks, count, *numbers, *known, own, other, *forms,
    ), warps, stages)  # fmt: skip
    blocks, count = triton.cdiv(nq, other), triton.cdiv(nk, own)
    _launched(_flash_of_keys, (b * kv * count,), (
        *arrays, ends, delta, *masks, dk, dv_, *strides, h, nq, nk, blocks, count, *numbers, *known, other, own, *forms,
    ), warps, stages)  # fmt: skip
    return tuple(x[:, 0] if lead == 3 else x for x in (dq, dk, dv_))


def flash_of_sinks(dy, y, ends, sinks):
    """Return the gradient of `sinks`, which broadcast to [b, h, nq, 1], from that of y, and from y and `ends` of flash_forward."""
    shift = 0.0 if y.dtype == torch.bfloat16 else 14.0
    scaled, delta = sinks.float() * 1.4426950408889634, (dy.float() * y.float()).sum(-1, keepdim=True)
    p = torch.where(sinks == float("-inf"), 0.0, torch.exp2(scaled - ends[..., :1] + shift) / ends[..., 1:])
    return (p * -delta).sum_to_size(sinks.shape).to(sinks.dtype)
